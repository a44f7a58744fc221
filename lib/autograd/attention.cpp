#include "autograd/attention.h"

namespace dew {

Var attention(Tape& tape, const Var& q, const Var& k, const Var& v, const kernels::AttentionMask& mask,
              const kernels::AttentionDropout& dropout) {
  DEW_CHECK(!q.placements.any_partial(), q.placements.str());
  DEW_CHECK(q.placements == k.placements && k.placements == v.placements, q.placements.str(),
            k.placements.str());
  Tensor o = tape.empty(q.value.shape(), q.value.dtype());
  Tensor log_sum_exp = tape.empty({q.value.dim(0), q.value.dim(2), q.value.dim(1)}, real_of(q.value.dtype()));
  kernels::attention_forward(tape.stream(), q.value, k.value, v.value, mask, dropout, o, log_sum_exp);
  return tape.record("attention", {q, k, v}, o, q.placements,
                     [q = q.value, k = k.value, v = v.value, o, log_sum_exp, mask, dropout](Backward& g) {
                       kernels::attention_backward(g.stream(), q, k, v, mask, dropout, o, log_sum_exp,
                                                   g.out(), g.in_or_scratch(0, q), g.in_or_scratch(1, k),
                                                   g.in_or_scratch(2, v));
                     });
}

}  // namespace dew
