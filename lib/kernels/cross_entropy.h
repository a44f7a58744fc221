// Softmax cross-entropy that turns logits into their gradient in place. T tokens, V vocabulary.
#pragma once

#include "kernels/gemm.h"

namespace dew::kernels {

/// loss_sum += sum over tokens with target >= 0 of (log sum exp(logits) - logits[target]); a target of -1 is
/// masked out. The logits [T, V] become grad_scale * (softmax - onehot), zero for masked tokens. targets [T]
/// i32 in [-1, V); loss_sum [1] f64, summed in token order whatever the thread count. A NaN among the logits
/// gives a NaN loss. Throws Error on a target outside the range.
void cross_entropy_in_place(Stream& stream, const Tensor& logits, const Tensor& targets, double grad_scale,
                            const Tensor& loss_sum);

/// The same loss without gradient; the logits stay as they are. For evaluation.
void cross_entropy_loss(Stream& stream, const Tensor& logits, const Tensor& targets, const Tensor& loss_sum);

}  // namespace dew::kernels
