// LayerNorm over the last dim. T tokens, D width.
#pragma once

#include "kernels/gemm.h"

namespace dew::kernels {

/// y = (x - mean(x)) / sqrt(variance(x) + eps) * weight + bias (arXiv:1607.06450; the variance divides by D).
/// x, y [T, D]; weight, bias [D], bias may be undefined; moments [T, 2]: mean and inverse root, kept for the
/// backward. Leading dims of x are folded into T. Enqueued on the stream.
void layer_norm_forward(Stream& stream, const Tensor& x, const Tensor& weight, const Tensor& bias, double eps,
                        const Tensor& y, const Tensor& moments);

/// Gradients from dy [T, D]: dx [T, D]; d_weight, d_bias [D] in the reduction dtype (f32 or f64, never below
/// x's), d_bias undefined where there is no bias. Sums over tokens in an order that does not depend on the
/// thread count.
void layer_norm_backward(Stream& stream, const Tensor& x, const Tensor& weight, const Tensor& moments,
                         const Tensor& dy, const Target& dx, const Target& d_weight, const Target& d_bias);

}  // namespace dew::kernels
