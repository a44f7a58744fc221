// A vector added to every row. T tokens, F width.
#pragma once

#include "kernels/gemm.h"

namespace dew::kernels {

/// y[t] = x[t] + bias. x, y [T, F] (y may be x), bias [F]. Enqueued on the stream.
void add_bias(Stream& stream, const Tensor& x, const Tensor& bias, const Tensor& y);
/// d_bias [F] = the sum of dy [T, F] over tokens, in the reduction dtype (f32 or f64, never below dy's), in
/// an order that does not depend on the thread count.
void bias_backward(Stream& stream, const Tensor& dy, const Target& d_bias);

}  // namespace dew::kernels
