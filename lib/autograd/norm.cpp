#include "autograd/norm.h"

#include "kernels/layer_norm.h"
#include "kernels/norm.h"

namespace dew {

namespace {

/// Rows of x, its leading dims folded.
std::int64_t rows_of(const Tensor& x) {
  return x.numel() / x.dim(-1);
}

}  // namespace

Var rms_norm(Tape& tape, const Var& x, ParamRef weight, double eps) {
  DEW_CHECK(!x.placements.any_partial(), x.placements.str());
  Tensor y = tape.empty(x.value.shape(), x.value.dtype());
  Tensor inverse_rms = tape.empty({rows_of(x.value)}, real_of(x.value.dtype()));
  kernels::rms_norm_forward(tape.stream(), x.value, tape.param(weight), eps, y, inverse_rms);
  return tape.record("rms_norm", {x}, y, x.placements, [weight, saved = x.value, inverse_rms](Backward& g) {
    kernels::rms_norm_backward(g.stream(), saved, g.param(weight), inverse_rms, g.out(),
                               g.in_or_scratch(0, saved), g.grad(weight));
  });
}

Var layer_norm(Tape& tape, const Var& x, ParamRef weight, std::optional<ParamRef> bias, double eps) {
  DEW_CHECK(!x.placements.any_partial(), x.placements.str());
  Tensor y = tape.empty(x.value.shape(), x.value.dtype());
  Tensor moments = tape.empty({rows_of(x.value), 2}, real_of(x.value.dtype()));
  kernels::layer_norm_forward(tape.stream(), x.value, tape.param(weight), bias ? tape.param(*bias) : Tensor{},
                              eps, y, moments);
  return tape.record("layer_norm", {x}, y, x.placements,
                     [weight, bias, saved = x.value, moments](Backward& g) {
                       kernels::layer_norm_backward(g.stream(), saved, g.param(weight), moments, g.out(),
                                                    g.in_or_scratch(0, saved), g.grad(weight),
                                                    bias ? g.grad(*bias) : kernels::Target{});
                     });
}

}  // namespace dew
