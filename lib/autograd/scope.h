// Everything a block run may touch besides its inputs.
#pragma once

#include <set>
#include <string>

#include "autograd/rope.h"
#include "autograd/tape.h"
#include "comm/mesh.h"

namespace dew {

/// Sites whose activations are dropped and computed again in the backward: names a block gives to its parts.
struct RematPolicy {
  bool whole_blocks = false;
  std::set<std::string, std::less<>> sites;
  bool drops(std::string_view site) const { return sites.contains(site); }
};

struct Scope {
  Tape& tape;
  const Mesh& mesh;
  const RematPolicy& policy;
  RopeTables& rope_tables;
};

}  // namespace dew
