#include "autograd/linear.h"

#include "kernels/gemm.h"

namespace dew {

using kernels::Transpose;

Var linear(Tape& tape, const Var& x, ParamRef w) {
  const Tensor& weight = tape.param(w);
  DEW_CHECK(x.value.shape().dims() == 2 && weight.dim(1) == x.value.dim(1), x.value.shape(), weight.shape());
  Tensor y = tape.empty({x.value.dim(0), weight.dim(0)}, x.value.dtype());
  kernels::gemm(tape.stream(), x.value, Transpose::kNo, weight, Transpose::kYes, {y});
  return tape.record(
      "linear", {x}, y, x.placements,
      [w](Backward& g) {
        if (g.wants(0))
          kernels::gemm(g.stream(), g.out(), Transpose::kNo, g.param(w), Transpose::kNo, g.in(0));
      },
      [w, saved = x.value](WeightBackward& g) {
        kernels::gemm(g.stream(), g.out(), Transpose::kYes, saved, Transpose::kNo, g.grad(w));
      });
}

}  // namespace dew
