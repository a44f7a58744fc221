#include "kernels/cross_entropy.h"

#include "kernels/cpu/cross_entropy.h"
#include "kernels/dispatch.h"

namespace dew::kernels {

namespace {

// Operations a logit: the largest, the shift, the exponential and its sum; then the scaling.
constexpr double kLossFlops = 4, kGradientFlops = 5;

void check_logits(const Tensor& logits, const Tensor& targets, const Tensor& loss_sum) {
  DEW_CHECK(logits.shape().dims() == 2 && logits.dim(1) >= 1, logits.shape());
  DEW_CHECK(targets.dtype() == DType::kI32 && targets.numel() == logits.dim(0), targets.shape(),
            logits.shape());
  DEW_CHECK(loss_sum.dtype() == DType::kF64 && loss_sum.numel() == 1, name_of(loss_sum.dtype()),
            loss_sum.shape());
}

Tensor token_losses(Stream& stream, const Tensor& logits) {
  return Tensor::empty({logits.dim(0)}, DType::kF64, stream, Owner::kBuffers);
}

}  // namespace

void cross_entropy_in_place(Stream& stream, const Tensor& logits, const Tensor& targets, double grad_scale,
                            const Tensor& loss_sum) {
  check_logits(logits, targets, loss_sum);
  KernelScope scope(stream, KernelKind::kCrossEntropy, kGradientFlops * static_cast<double>(logits.numel()),
                    2 * static_cast<double>(logits.bytes()));
  const Tensor losses = token_losses(stream, logits);
  DEW_DISPATCH(stream,
               cross_entropy(logits, targets, cpu::LogitsGradient::kYes, grad_scale, losses, loss_sum));
}

void cross_entropy_loss(Stream& stream, const Tensor& logits, const Tensor& targets, const Tensor& loss_sum) {
  check_logits(logits, targets, loss_sum);
  KernelScope scope(stream, KernelKind::kCrossEntropy, kLossFlops * static_cast<double>(logits.numel()),
                    static_cast<double>(logits.bytes()));
  const Tensor losses = token_losses(stream, logits);
  DEW_DISPATCH(stream, cross_entropy(logits, targets, cpu::LogitsGradient::kNo, 0, losses, loss_sum));
}

}  // namespace dew::kernels
