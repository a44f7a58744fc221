// CPU loops of kernels/norm.h: tokens in parallel.
#pragma once

#include "kernels/norm.h"

namespace dew::kernels::cpu {

void rms_norm_forward(const Tensor& x, const Tensor& weight, double eps, const Tensor& y,
                      const Tensor& inverse_rms);

/// `sums` is scratch of column_sums_shape.
void rms_norm_backward(const Tensor& x, const Tensor& weight, const Tensor& inverse_rms, const Tensor& dy,
                       const Target& dx, const Target& d_weight, const Tensor& sums);

}  // namespace dew::kernels::cpu
