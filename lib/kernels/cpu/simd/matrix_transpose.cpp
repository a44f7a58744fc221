// Transposes in registers, by blocks of 8 x 8 (f32) or 4 x 4 (f64): moving data gives the same bits in any
// way.
#include "kernels/cpu/simd/matrix_leaves.h"
#include "kernels/cpu/simd/vec_transpose.h"

namespace dew::kernels::cpu::DEW_ISA {
namespace {

/// y [8, 8] = factor x^T.
[[gnu::always_inline]] inline void block(Matrix<const float> x, Matrix<float> y, __m256 factor) {
  __m256 row[8];
  for (int i = 0; i < 8; ++i) row[i] = factor * _mm256_loadu_ps(x.first + i * x.stride);
  transpose_words(row);
  for (int i = 0; i < 8; ++i) _mm256_storeu_ps(y.first + i * y.stride, row[i]);
}

/// y [4, 4] = factor x^T.
[[gnu::always_inline]] inline void block(Matrix<const double> x, Matrix<double> y, __m256d factor) {
  __m256d row[4], pair[4];
  for (int i = 0; i < 4; ++i) row[i] = factor * _mm256_loadu_pd(x.first + i * x.stride);
  for (int i = 0; i < 4; i += 2) {
    pair[i] = _mm256_unpacklo_pd(row[i], row[i + 1]);
    pair[i + 1] = _mm256_unpackhi_pd(row[i], row[i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    _mm256_storeu_pd(y.first + i * y.stride, _mm256_permute2f128_pd(pair[i], pair[i + 2], 0x20));
    _mm256_storeu_pd(y.first + (i + 2) * y.stride, _mm256_permute2f128_pd(pair[i], pair[i + 2], 0x31));
  }
}

[[gnu::always_inline]] inline __m256 all_lanes(float x) {
  return _mm256_set1_ps(x);
}
[[gnu::always_inline]] inline __m256d all_lanes(double x) {
  return _mm256_set1_pd(x);
}

/// The same, element by element, with zeros in lanes [rows, lanes).
template <class T>
void edge(std::int64_t rows, std::int64_t lanes, std::int64_t columns, T factor, Matrix<const T> x,
          Matrix<T> y) {
  for (std::int64_t p = 0; p < columns; ++p) {
    T* to = y.first + p * y.stride;
    for (std::int64_t r = 0; r < rows; ++r) to[r] = factor * x.first[r * x.stride + p];
    for (std::int64_t r = rows; r < lanes; ++r) to[r] = 0;
  }
}

}  // namespace

template <class T>
void transpose(std::int64_t rows, std::int64_t columns, T factor, Matrix<const T> x, Matrix<T> y) {
  constexpr std::int64_t kSide = 32 / sizeof(T);
  const auto factors = all_lanes(factor);
  std::int64_t i = 0;
  for (; i + kSide <= rows; i += kSide) {
    std::int64_t p = 0;
    for (; p + kSide <= columns; p += kSide)
      block(Matrix<const T>{x.first + i * x.stride + p, x.stride}, {y.first + p * y.stride + i, y.stride},
            factors);
    edge(kSide, kSide, columns - p, factor, Matrix<const T>{x.first + i * x.stride + p, x.stride},
         {y.first + p * y.stride + i, y.stride});
  }
  const std::int64_t whole = (rows + Vec<T>::kLanes - 1) / Vec<T>::kLanes * Vec<T>::kLanes;
  if (i < whole)
    edge(rows - i, whole - i, columns, factor, Matrix<const T>{x.first + i * x.stride, x.stride},
         {y.first + i, y.stride});
}

template void transpose(std::int64_t, std::int64_t, float, Matrix<const float>, Matrix<float>);
template void transpose(std::int64_t, std::int64_t, double, Matrix<const double>, Matrix<double>);

}  // namespace dew::kernels::cpu::DEW_ISA
