// CPU loops of kernels/reduce.h.
#pragma once

#include "kernels/reduce.h"

namespace dew::kernels::cpu {

void sum_of_squares(const Tensor& x, double& sum);
void sum_in_order(std::span<const Tensor> terms, const Tensor& y, bool accumulate);

}  // namespace dew::kernels::cpu
