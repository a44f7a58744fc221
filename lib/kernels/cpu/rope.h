// CPU loops of kernels/rope.h: tokens in parallel.
#pragma once

#include "kernels/rope.h"

namespace dew::kernels::cpu {

void rope_table(std::int64_t begin, const std::vector<double>& frequencies, const Tensor& table);
void rope(const Tensor& x, const Tensor& table, const Tensor& rows, RopeDirection direction, const Target& y);

}  // namespace dew::kernels::cpu
