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

Tensor token_losses(Stream& stream, std::int64_t tokens) {
  return Tensor::empty({tokens}, DType::kF64, stream, Owner::kBuffers);
}

void check_part(const Tensor& logits, const Tensor& targets, const VocabPart& part) {
  DEW_CHECK(logits.shape().dims() == 2, logits.shape());
  DEW_CHECK(part.first >= 0 && part.first + logits.dim(1) <= part.size, part.first, logits.shape(),
            part.size);
  DEW_CHECK(targets.dtype() == DType::kI32 && targets.numel() == logits.dim(0), targets.shape(),
            logits.shape());
}

void check_numbers(const Tensor& numbers, const Tensor& targets, std::int64_t parts) {
  DEW_CHECK(numbers.dtype() == DType::kF64 && numbers.numel() == parts * targets.numel() * kPartNumbers,
            numbers.shape(), targets.shape());
}

}  // namespace

void cross_entropy_in_place(Stream& stream, const Tensor& logits, const Tensor& targets, double grad_scale,
                            const Tensor& loss_sum) {
  check_logits(logits, targets, loss_sum);
  KernelScope scope(stream, KernelKind::kCrossEntropy, kGradientFlops * static_cast<double>(logits.numel()),
                    2 * static_cast<double>(logits.bytes()));
  const Tensor losses = token_losses(stream, logits.dim(0));
  DEW_DISPATCH(stream,
               cross_entropy(logits, targets, cpu::LogitsGradient::kYes, grad_scale, losses, loss_sum));
}

void cross_entropy_loss(Stream& stream, const Tensor& logits, const Tensor& targets, const Tensor& loss_sum) {
  check_logits(logits, targets, loss_sum);
  KernelScope scope(stream, KernelKind::kCrossEntropy, kLossFlops * static_cast<double>(logits.numel()),
                    static_cast<double>(logits.bytes()));
  const Tensor losses = token_losses(stream, logits.dim(0));
  DEW_DISPATCH(stream, cross_entropy(logits, targets, cpu::LogitsGradient::kNo, 0, losses, loss_sum));
}

void cross_entropy_part(Stream& stream, const Tensor& logits, const Tensor& targets, const VocabPart& part,
                        const Tensor& part_numbers) {
  check_part(logits, targets, part);
  check_numbers(part_numbers, targets, 1);
  KernelScope scope(stream, KernelKind::kCrossEntropy, kLossFlops * static_cast<double>(logits.numel()),
                    2 * static_cast<double>(logits.bytes()) + static_cast<double>(part_numbers.bytes()));
  DEW_DISPATCH(stream, cross_entropy_part(logits, targets, part, part_numbers));
}

void cross_entropy_joined_loss(Stream& stream, const Tensor& all_numbers, const Tensor& targets,
                               const Tensor& loss_sum) {
  DEW_CHECK(all_numbers.shape().dims() == 3, all_numbers.shape());
  check_numbers(all_numbers, targets, all_numbers.dim(0));
  DEW_CHECK(targets.dtype() == DType::kI32, name_of(targets.dtype()));
  DEW_CHECK(loss_sum.dtype() == DType::kF64 && loss_sum.numel() == 1, loss_sum.shape());
  KernelScope scope(stream, KernelKind::kCrossEntropy, kLossFlops * static_cast<double>(all_numbers.numel()),
                    static_cast<double>(all_numbers.bytes()));
  const Tensor losses = token_losses(stream, targets.numel());
  DEW_DISPATCH(stream, cross_entropy_joined_loss(all_numbers, targets, losses, loss_sum));
}

void cross_entropy_joined_gradient(Stream& stream, const Tensor& all_numbers, std::int64_t index,
                                   const Tensor& targets, const VocabPart& part, double grad_scale,
                                   const Tensor& exponentials) {
  check_part(exponentials, targets, part);
  DEW_CHECK(all_numbers.shape().dims() == 3 && index >= 0 && index < all_numbers.dim(0), all_numbers.shape(),
            index);
  check_numbers(all_numbers, targets, all_numbers.dim(0));
  KernelScope scope(stream, KernelKind::kCrossEntropy, static_cast<double>(exponentials.numel()),
                    2 * static_cast<double>(exponentials.bytes()));
  DEW_DISPATCH(stream,
               cross_entropy_joined_gradient(all_numbers, index, targets, part, grad_scale, exponentials));
}

}  // namespace dew::kernels
