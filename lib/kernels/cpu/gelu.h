// CPU loops of kernels/gelu.h: flat, cut between threads.
#pragma once

#include "kernels/gelu.h"

namespace dew::kernels::cpu {

void gelu_forward(Gelu kind, const Tensor& x, const Tensor& y);
void gelu_backward(Gelu kind, const Tensor& x, const Tensor& dy, const Target& dx);

}  // namespace dew::kernels::cpu
