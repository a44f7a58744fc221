// y += x of n elements, in what y is stored as.
#pragma once

#include "kernels/cpu/simd/table.h"

namespace dew::kernels::cpu {

inline void add_row(const float* x, float* y, std::int64_t n) {
  simd_ops<float>().add(y, x, y, n);
}
inline void add_row(const double* x, double* y, std::int64_t n) {
  simd_ops<double>().add(y, x, y, n);
}
inline void add_row(const float* x, double* y, std::int64_t n) {
  simd_table().f32_to_f64.add(x, y, n);
}
inline void add_row(const bf16* x, float* y, std::int64_t n) {
  simd_table().bf16_to_f32.add(x, y, n);
}
inline void add_row(const bf16* x, double* y, std::int64_t n) {
  simd_table().bf16_to_f64.add(x, y, n);
}

}  // namespace dew::kernels::cpu
