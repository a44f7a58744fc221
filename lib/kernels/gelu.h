// GELU, exact and in its tanh form.
#pragma once

#include "kernels/gemm.h"

namespace dew::kernels {

/// kExact: x Phi(x), Phi the distribution of a standard normal; kTanh: x (1 + tanh(sqrt(2 / pi) (x + 0.044715
/// x^3))) / 2 (arXiv:1606.08415).
enum class Gelu : bool { kExact, kTanh };

/// y = gelu(x), of equal sizes. Enqueued on the stream.
void gelu_forward(Stream& stream, Gelu kind, const Tensor& x, const Tensor& y);
/// dx = dy gelu'(x).
void gelu_backward(Stream& stream, Gelu kind, const Tensor& x, const Tensor& dy, const Target& dx);

}  // namespace dew::kernels
