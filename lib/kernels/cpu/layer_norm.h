// CPU loops of kernels/layer_norm.h: tokens in parallel.
#pragma once

#include "kernels/layer_norm.h"

namespace dew::kernels::cpu {

void layer_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps,
                        const Tensor& y, const Tensor& moments);

/// `weight_sums` and `bias_sums` are scratch of column_sums_shape; the second is not touched without a bias.
void layer_norm_backward(const Tensor& x, const Tensor& weight, const Tensor& moments, const Tensor& dy,
                         const Target& dx, const Target& d_weight, const Target& d_bias,
                         const Tensor& weight_sums, const Tensor& bias_sums);

}  // namespace dew::kernels::cpu
