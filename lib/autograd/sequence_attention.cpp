#include "autograd/sequence_attention.h"

#include "autograd/attention.h"

namespace dew {

Var sequence_attention(Scope& scope, const Var& q, const Var& k, const Var& v,
                       const kernels::AttentionMask& mask) {
  DEW_CHECK(scope.mesh.extent(Axis::kSequence) == 1);
  return attention(scope.tape, q, k, v, mask);
}

}  // namespace dew
