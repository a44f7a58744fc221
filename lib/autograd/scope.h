// Everything a block run may touch besides its inputs.
#pragma once

#include <set>
#include <string>

#include "autograd/rope.h"
#include "autograd/sequence_rule.h"
#include "autograd/tape.h"
#include "comm/mesh.h"

namespace dew {

/// Sites whose activations are dropped and computed again in the backward: names a block gives to its parts.
struct RematPolicy {
  bool whole_blocks = false;
  std::set<std::string, std::less<>> sites;
  bool drops(std::string_view site) const { return sites.contains(site); }
};

/// The rule alone: nothing named, nothing measured.
inline const SequencePolicy kSequenceRule{};

struct Scope {
  Tape& tape;
  const Mesh& mesh;
  const RematPolicy& policy;
  RopeTables& rope_tables;
  const SequencePolicy& sequence = kSequenceRule;

  /// The same surroundings on another tape.
  Scope on(Tape& other) const { return {other, mesh, policy, rope_tables, sequence}; }
};

}  // namespace dew
