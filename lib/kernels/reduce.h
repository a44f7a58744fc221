// Sums whose order does not depend on the thread count.
#pragma once

#include <span>

#include "tensor/tensor.h"

namespace dew::kernels {

/// Sum of squares in f64 of a floating tensor; NaN and infinity come through. Host-blocking. 0 on a meta
/// device.
double sum_of_squares(Stream& stream, const Tensor& x);

/// y = terms[0] + terms[1] + ..., added in that order, or y += them. All of y's size and dtype (f64, f32 or
/// i64, the last wrapping modulo 2^64). y may be terms[0].
void sum_in_order(Stream& stream, std::span<const Tensor> terms, const Tensor& y, bool accumulate);

}  // namespace dew::kernels
