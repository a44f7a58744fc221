// Attention of bf16 by the processor's own bf16 products: scores and softmax in f32, probabilities and
// gradients of scores rounded to bf16 for their products.
#pragma once

#include "kernels/cpu/attention.h"

namespace dew::kernels::cpu {

/// Whether a call runs by pairs: bf16 on a processor that multiplies it, with heads of even width.
bool multiplies_pairs(const AttentionShape& shape, DType dtype);

/// f32 elements of scratch.
std::int64_t attention_pairs_forward_scratch(const AttentionShape& shape);
std::int64_t attention_pairs_backward_scratch(const AttentionShape& shape);

void attention_pairs_forward(const AttentionShape& shape, const Tensor& q, const Tensor& k, const Tensor& v,
                             const Tensor& o, const Tensor& log_sum_exp, const Tensor& scratch);
void attention_pairs_backward(const AttentionShape& shape, const AttentionPass& pass, const Target& dq,
                              const Target& dk, const Target& dv, const Tensor& scratch);

}  // namespace dew::kernels::cpu
