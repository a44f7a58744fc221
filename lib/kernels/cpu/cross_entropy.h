// CPU loops of kernels/cross_entropy.h: tokens in parallel.
#pragma once

#include "kernels/cross_entropy.h"

namespace dew::kernels::cpu {

enum class LogitsGradient : bool { kNo, kYes };

/// `losses` [T] f64 is scratch: the tokens' losses, added to loss_sum in their order. Without a gradient the
/// logits stay.
void cross_entropy(const Tensor& logits, const Tensor& targets, LogitsGradient gradient, double grad_scale,
                   const Tensor& losses, const Tensor& loss_sum);

void cross_entropy_part(const Tensor& logits, const Tensor& targets, const VocabPart& part,
                        const Tensor& part_numbers);
/// `losses` as above.
void cross_entropy_joined_loss(const Tensor& all_numbers, const Tensor& targets, const Tensor& losses,
                               const Tensor& loss_sum);
void cross_entropy_joined_gradient(const Tensor& all_numbers, std::int64_t index, const Tensor& targets,
                                   const VocabPart& part, double grad_scale, const Tensor& exponentials);

}  // namespace dew::kernels::cpu
