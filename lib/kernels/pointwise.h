// Elementwise arithmetic on floating tensors of one dtype. All enqueued on the stream.
#pragma once

#include "kernels/gemm.h"
#include "tensor/tensor.h"

namespace dew::kernels {

/// y = a + b, all of equal size; y may be a.
void add(Stream& stream, const Tensor& a, const Tensor& b, const Tensor& y);

/// target = source in the target's format: widened, or rounded to nearest even. f32 to f64 or bf16, f64 to
/// f32 or bf16, bf16 to f32 or f64; equal formats are copied.
void cast(Stream& stream, const Tensor& source, const Tensor& target);

/// x *= factor.
void scale(Stream& stream, const Tensor& x, double factor);

/// average += (1 - decay) (value - average), one rounding after the difference: the exponential moving
/// average of weights. Where the two are equal the average stays as it is.
void lerp(Stream& stream, const Tensor& average, const Tensor& value, double decay);

/// y = gate sigmoid(gate) up (SwiGLU, arXiv:2002.05202 eq. 6). gate, up, y: equal sizes.
void swiglu_forward(Stream& stream, const Tensor& gate, const Tensor& up, const Tensor& y);
/// Gradients of swiglu_forward from dy, into d_gate and d_up.
void swiglu_backward(Stream& stream, const Tensor& gate, const Tensor& up, const Tensor& dy,
                     const Target& d_gate, const Target& d_up);

}  // namespace dew::kernels
