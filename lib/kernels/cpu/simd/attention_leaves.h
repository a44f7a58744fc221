// Declarations of attention's leaf loops of one instruction set; what they do stands in attention_table.h.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/attention_table.h"

namespace dew::kernels::cpu::DEW_ISA {

template <class T>
void softmax_step(std::int64_t keys, std::int64_t width, const TileMask& mask, T scale, Matrix<T> scores,
                  T* largest, T* sum, T* factor);
template <class T>
void softmax_gradient(std::int64_t keys, std::int64_t width, const TileMask& mask, T scale, T d_scale,
                      Matrix<T> scores, Matrix<T> d_p, const T* log_sum_exp, const T* delta);
template <class T>
void scale_rows(std::int64_t rows, std::int64_t n, const T* factor, Matrix<const T> x, Matrix<T> y,
                bool accumulate);
template <class T>
void dot_rows(std::int64_t rows, std::int64_t n, Matrix<const T> x, Matrix<const T> y, T* sums);

}  // namespace dew::kernels::cpu::DEW_ISA
