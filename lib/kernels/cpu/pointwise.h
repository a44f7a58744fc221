// CPU loops of kernels/pointwise.h: flat, cut between threads.
#pragma once

#include "kernels/pointwise.h"

namespace dew::kernels::cpu {

void add(const Tensor& a, const Tensor& b, const Tensor& y);
void cast(const Tensor& source, const Tensor& target);
void scale(const Tensor& x, double factor);
void lerp(const Tensor& average, const Tensor& value, double decay);
void swiglu_forward(const Tensor& gate, const Tensor& up, const Tensor& y);
void swiglu_backward(const Tensor& gate, const Tensor& up, const Tensor& dy, const Target& d_gate,
                     const Target& d_up);

}  // namespace dew::kernels::cpu
