#include "autograd/norm.h"

#include "kernels/norm.h"

namespace dew {

Var rms_norm(Tape& tape, const Var& x, ParamRef weight, double eps) {
  DEW_CHECK(!x.placements.any_partial(), x.placements.str());
  Tensor y = tape.empty(x.value.shape(), x.value.dtype());
  Tensor inverse_rms = tape.empty({x.value.dim(0)}, x.value.dtype());
  kernels::rms_norm_forward(tape.stream(), x.value, tape.param(weight), eps, y, inverse_rms);
  return tape.record("rms_norm", {x}, y, x.placements, [weight, saved = x.value, inverse_rms](Backward& g) {
    kernels::rms_norm_backward(g.stream(), saved, g.param(weight), inverse_rms, g.out(),
                               g.in_or_scratch(0, saved), g.grad(weight));
  });
}

}  // namespace dew
