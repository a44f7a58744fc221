// CPU loops of kernels/strided.h: rows in parallel.
#pragma once

#include "kernels/strided.h"

namespace dew::kernels::cpu {

void copy_strided(const std::array<std::int64_t, 4>& extents, const StridedView& from, const StridedView& to,
                  bool accumulate);
void merge_attention(const Tensor& o_part, const Tensor& log_sum_exp_part, const Tensor& o,
                     const Tensor& log_sum_exp);

}  // namespace dew::kernels::cpu
