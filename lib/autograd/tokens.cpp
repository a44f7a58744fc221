#include "autograd/tokens.h"

namespace dew {

Var whole_tokens(Scope& scope, const Var& x, std::int64_t) {
  DEW_CHECK(scope.mesh.extent(Axis::kTensor) == 1);
  return x;
}

Var own_tokens(Scope& scope, const Var& y) {
  DEW_CHECK(scope.mesh.extent(Axis::kTensor) == 1);
  return y;
}

}  // namespace dew
