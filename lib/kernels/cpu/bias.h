// CPU loops of kernels/bias.h: tokens in parallel.
#pragma once

#include "kernels/bias.h"

namespace dew::kernels::cpu {

void add_bias(const Tensor& x, const Tensor& bias, const Tensor& y);
/// `sums` is scratch of column_sums_shape.
void bias_backward(const Tensor& dy, const Target& d_bias, const Tensor& sums);

}  // namespace dew::kernels::cpu
