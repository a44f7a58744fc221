// Softmax cross-entropy that turns logits into their gradient in place. T tokens, V vocabulary.
#pragma once

#include "kernels/gemm.h"
#include "kernels/vocab_part.h"

namespace dew::kernels {

/// loss_sum += sum over tokens with target >= 0 of (log sum exp(logits) - logits[target]); a target of -1 is
/// masked out. The logits [T, V] become grad_scale * (softmax - onehot), zero for masked tokens. targets [T]
/// i32 in [-1, V); loss_sum [1] f64, summed in token order whatever the thread count. A NaN among the logits
/// gives a NaN loss. Throws Error on a target outside the range.
void cross_entropy_in_place(Stream& stream, const Tensor& logits, const Tensor& targets, double grad_scale,
                            const Tensor& loss_sum);

/// The same loss without gradient; the logits stay as they are. For evaluation.
void cross_entropy_loss(Stream& stream, const Tensor& logits, const Tensor& targets, const Tensor& loss_sum);

// The same over a vocabulary whose parts lie on different ranks, C columns here: `cross_entropy_part` on each
// part, the numbers of all parts put together, then the loss and each part's gradient. Masked tokens count
// nothing, and a NaN in any part gives a NaN loss.

inline constexpr std::int64_t kPartNumbers = 3;  ///< of one part, a token

/// What one part knows of each token: part_numbers [T, 3] f64 = the largest logit of the part (-infinity of
/// no column), the sum of e^(logit - largest), the target's logit (0 where another part has the target). The
/// logits [T, C] become e^(logit - largest). C may be 0. Throws Error on a target outside the vocabulary.
void cross_entropy_part(Stream& stream, const Tensor& logits, const Tensor& targets, const VocabPart& part,
                        const Tensor& part_numbers);

/// loss_sum += the loss of all tokens, from the numbers of all parts, [parts, T, 3] f64, combined in their
/// order.
void cross_entropy_joined_loss(Stream& stream, const Tensor& all_numbers, const Tensor& targets,
                               const Tensor& loss_sum);

/// The exponentials [T, C] of the part that is `index`-th among all become grad_scale * (softmax - onehot).
void cross_entropy_joined_gradient(Stream& stream, const Tensor& all_numbers, std::int64_t index,
                                   const Tensor& targets, const VocabPart& part, double grad_scale,
                                   const Tensor& exponentials);

}  // namespace dew::kernels
