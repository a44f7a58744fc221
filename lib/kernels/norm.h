// Normalisation over the last dim. T tokens, D width.
#pragma once

#include "kernels/gemm.h"

namespace dew::kernels {

/// y = x / sqrt(mean(x^2) + eps) * weight (RMSNorm, arXiv:1910.07467). x, y [T, D]; weight [D]; inverse_rms
/// [T], kept for the backward. Leading dims of x are folded into T. Enqueued on the stream.
void rms_norm_forward(Stream& stream, const Tensor& x, const Tensor& weight, double eps, const Tensor& y,
                      const Tensor& inverse_rms);

/// Gradients from dy [T, D]: dx [T, D], d_weight [D]. d_weight has the reduction dtype (f32 or f64, never
/// below x's); its sum over tokens is taken in an order that does not depend on the thread count.
void rms_norm_backward(Stream& stream, const Tensor& x, const Tensor& weight, const Tensor& inverse_rms,
                       const Tensor& dy, const Target& dx, const Target& d_weight);

}  // namespace dew::kernels
