// Declarations of the matrix leaf loops of one instruction set; what they do stands in matrix_table.h.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/matrix_table.h"

namespace dew::kernels::cpu::DEW_ISA {

template <class T>
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<const T> a, Matrix<const T> b,
              Matrix<T> c, bool accumulate);
template <class T>
void multiply_transposed(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<const T> a, Matrix<const T> b,
                         Matrix<T> c, bool accumulate);
template <class T>
void transpose(std::int64_t rows, std::int64_t columns, T factor, Matrix<const T> x, Matrix<T> y);
}  // namespace dew::kernels::cpu::DEW_ISA
