// The inner loops of matrix products as function pointers, chosen like those of table.h. Their operands lie
// in the nearest caches; gemm and attention cut and copy theirs so that they do.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/table.h"

namespace dew::kernels::cpu {

/// A row-major matrix inside a larger one.
template <class T>
struct Matrix {
  T* first = nullptr;
  std::int64_t stride = 0;  ///< elements from a row to the next

  [[gnu::always_inline]] Matrix at(std::int64_t row, std::int64_t column) const {
    return {first + row * stride + column, stride};
  }
  // NOLINTNEXTLINE(google-explicit-constructor): what may be written may be read
  [[gnu::always_inline]] operator Matrix<const T>() const { return {first, stride}; }
};

/// Loops over T = float or double. Sums over an inner dimension run in its order with one rounding a step,
/// whatever the sizes and the place of an element; then they are added to what is there, or overwrite it.
template <class T>
struct MatrixOps {
  std::int64_t lanes;  ///< of one vector

  /// c [m, n] (+)= a b, a [m, k], b [k, n].
  void (*multiply)(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<const T> a, Matrix<const T> b,
                   Matrix<T> c, bool accumulate);
  /// The same with a stored transposed, [k, m].
  void (*multiply_transposed)(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<const T> a,
                              Matrix<const T> b, Matrix<T> c, bool accumulate);
  /// y [columns, rows] = factor x^T, x [rows, columns]; lanes from `rows` up to a whole vector become 0.
  void (*transpose)(std::int64_t rows, std::int64_t columns, T factor, Matrix<const T> x, Matrix<T> y);
};

struct MatrixTable {
  MatrixOps<float> f32;
  MatrixOps<double> f64;
};

/// The table of one instruction set.
const MatrixTable& matrix_table(Isa isa);

/// The loops over T on this processor. Throws Error without AVX2 and FMA.
template <class T>
const MatrixOps<T>& matrix_ops();

}  // namespace dew::kernels::cpu
