#include "autograd/loss.h"

#include <algorithm>

#include "kernels/cross_entropy.h"
#include "kernels/pointwise.h"
#include "tensor/copy.h"

namespace dew {

using kernels::Transpose;

Var head_loss(Tape& tape, const Var& x, ParamRef w, const Tensor& targets, double scale, std::int64_t chunk) {
  DEW_CHECK(!x.placements.any_partial(), x.placements.str());
  DEW_CHECK(x.value.dim(0) == targets.numel() && chunk >= 1, x.value.shape(), targets.shape(), chunk);
  Stream& stream = tape.stream();
  const Tensor& weight = tape.param(w);
  const std::int64_t tokens = x.value.dim(0), vocab = weight.dim(0),
                     step = std::min(chunk, std::max<std::int64_t>(tokens, 1));
  const Tensor flat_targets = targets.range(0, tokens);
  Tensor loss = Tensor::zeros({1}, DType::kF64, stream, Owner::kActivations);
  Tensor dx;
  if (tape.differentiates()) dx = tape.empty(x.value.shape(), x.value.dtype());
  const Tensor logits = Tensor::empty({step, vocab}, x.value.dtype(), stream, Owner::kBuffers);
  for (std::int64_t begin = 0; begin < tokens; begin += step) {
    const std::int64_t end = std::min(tokens, begin + step);
    const Tensor rows = x.value.rows(begin, end), part = logits.rows(0, end - begin);
    kernels::gemm(stream, rows, Transpose::kNo, weight, Transpose::kYes, {part});
    if (!tape.differentiates()) {
      kernels::cross_entropy_loss(stream, part, flat_targets.range(begin, end), loss);
      continue;
    }
    kernels::cross_entropy_in_place(stream, part, flat_targets.range(begin, end), scale, loss);
    kernels::gemm(stream, part, Transpose::kNo, weight, Transpose::kNo, {dx.rows(begin, end)});
    kernels::gemm(stream, part, Transpose::kYes, rows, Transpose::kNo, tape.param_gradient(w));
  }
  kernels::scale(stream, loss, scale);
  return tape.record("head_loss", {x}, loss, x.placements.summed(), [dx](Backward& g) {
    DEW_CHECK(g.stream().device().is_meta() || read_scalar(g.stream(), g.out()) == 1.0);
    g.pass(0, dx);
  });
}

}  // namespace dew
