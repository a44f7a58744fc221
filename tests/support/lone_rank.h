// The surroundings of a block run on one rank.
#pragma once

#include "autograd/scope.h"

namespace dew::test {

struct LoneRank {
  Mesh mesh{MeshShape{}, MeshCoord{}, {}};
  RematPolicy policy;
  RopeTables tables;

  Scope scope(Tape& tape) { return {tape, mesh, policy, tables}; }
};

}  // namespace dew::test
