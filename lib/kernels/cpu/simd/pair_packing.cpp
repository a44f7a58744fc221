// Pairs of bf16 out of rows and columns: data is moved, never computed with.
#include "kernels/cpu/simd/pair_table.h"
#include "kernels/cpu/simd/vec_transpose.h"

namespace dew::kernels::cpu::DEW_ISA {
namespace {

/// y [8, 8] = x^T, in pairs of columns.
[[gnu::always_inline]] inline void block(Matrix<const bf16> x, Matrix<Pair> y) {
  __m256 row[8];
  for (int i = 0; i < 8; ++i)
    row[i] =
        _mm256_castsi256_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x.first + i * x.stride)));
  transpose_words(row);
  for (int i = 0; i < 8; ++i)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y.first + i * y.stride), _mm256_castps_si256(row[i]));
}

[[gnu::always_inline]] inline Pair pair_of(const bf16* first, const bf16* second) {
  Pair low = 0, high = 0;
  __builtin_memcpy(&low, first, sizeof(bf16));
  if (second != nullptr) __builtin_memcpy(&high, second, sizeof(bf16));
  return low | high << 16;
}

/// The same, pair by pair, from pair column `p` on.
void edge(std::int64_t rows, std::int64_t columns, std::int64_t p, Matrix<const bf16> x, Matrix<Pair> y) {
  for (; 2 * p < columns; ++p)
    for (std::int64_t r = 0; r < rows; ++r) {
      const bf16* first = x.first + r * x.stride + 2 * p;
      y.first[p * y.stride + r] = pair_of(first, 2 * p + 1 < columns ? first + 1 : nullptr);
    }
}

void transpose(std::int64_t rows, std::int64_t columns, Matrix<const bf16> x, Matrix<Pair> y) {
  constexpr std::int64_t kSide = 8;
  std::int64_t i = 0;
  for (; i + kSide <= rows; i += kSide) {
    const Matrix<const bf16> band{x.first + i * x.stride, x.stride};
    std::int64_t p = 0;
    for (; 2 * (p + kSide) <= columns; p += kSide)
      block(Matrix<const bf16>{band.first + 2 * p, x.stride}, {y.first + p * y.stride + i, y.stride});
    edge(kSide, columns, p, band, {y.first + i, y.stride});
  }
  edge(rows - i, columns, 0, Matrix<const bf16>{x.first + i * x.stride, x.stride}, {y.first + i, y.stride});
}

void interleave(std::int64_t rows, std::int64_t columns, Matrix<const bf16> x, Matrix<Pair> y) {
  constexpr std::int64_t kLanes = 16;
  for (std::int64_t r = 0; r < rows; r += 2) {
    const bf16* even = x.first + r * x.stride;
    const bf16* odd = r + 1 < rows ? even + x.stride : nullptr;
    Pair* to = y.first + r / 2 * y.stride;
    std::int64_t j = 0;
    for (; odd != nullptr && j + kLanes <= columns; j += kLanes) {
      const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(even + j)),
                    b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(odd + j));
      const __m256i low = _mm256_unpacklo_epi16(a, b), high = _mm256_unpackhi_epi16(a, b);
      auto* out = reinterpret_cast<__m256i*>(to + j);
      _mm256_storeu_si256(out, _mm256_permute2x128_si256(low, high, 0x20));
      _mm256_storeu_si256(out + 1, _mm256_permute2x128_si256(low, high, 0x31));
    }
    for (; j < columns; ++j) to[j] = pair_of(even + j, odd != nullptr ? odd + j : nullptr);
  }
}

}  // namespace

extern const PairPacking kPairPacking;
constexpr PairPacking kPairPacking{.transpose = transpose, .interleave = interleave};

}  // namespace dew::kernels::cpu::DEW_ISA
