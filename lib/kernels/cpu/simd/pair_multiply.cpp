// Products of bf16 pairs by the processor's own instruction: blocks of c in registers, as in
// matrix_multiply.cpp.
#include "kernels/cpu/simd/pair_table.h"
#include "kernels/cpu/simd/vec.h"

namespace dew::kernels::cpu::DEW_ISA {
namespace {

enum class Order : bool { kPlain, kTransposed };

template <std::int64_t kVectors>
constexpr std::int64_t kMostRows = kVectors == 4 ? 6 : 12;

template <class C>
struct Product {
  std::int64_t k;
  Matrix<const Pair> a, b;
  Matrix<C> c;
  bool accumulate;
};

[[gnu::always_inline]] inline __m512bh load_pairs(const Pair* p, AllLanes) {
  return reinterpret_cast<__m512bh>(_mm512_loadu_si512(p));
}
[[gnu::always_inline]] inline __m512bh load_pairs(const Pair* p, FirstLanes part) {
  return reinterpret_cast<__m512bh>(_mm512_maskz_loadu_epi32(first_lanes_f(part.count), p));
}

/// Rows [i, i + kRows) and kVectors vectors from column j of c.
template <class C, Order order, std::int64_t kRows, std::int64_t kVectors, class Part>
[[gnu::always_inline]] inline void block(const Product<C>& x, std::int64_t i, std::int64_t j, Part part) {
  constexpr std::int64_t kLanes = VecF::kLanes;
  const std::int64_t row_step = order == Order::kPlain ? x.a.stride : 1;
  const std::int64_t inner_step = order == Order::kPlain ? 1 : x.a.stride;
  const Pair* a = x.a.first + i * row_step;
  const Pair* b = x.b.first + j;
  __m512 sums[kRows][kVectors];
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t v = 0; v < kVectors; ++v) sums[r][v] = _mm512_setzero_ps();
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t v = 0; v < kVectors; ++v)
      __builtin_prefetch(x.c.first + (i + r) * x.c.stride + j + v * kLanes, 1);
  for (std::int64_t p = 0; p < x.k; ++p) {
    __m512bh right[kVectors];
    for (std::int64_t v = 0; v < kVectors; ++v) right[v] = load_pairs(b + v * kLanes, part);
    for (std::int64_t r = 0; r < kRows; ++r) {
      const auto left = reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(a[r * row_step])));
      for (std::int64_t v = 0; v < kVectors; ++v) sums[r][v] = _mm512_dpbf16_ps(sums[r][v], left, right[v]);
    }
    a += inner_step;
    b += x.b.stride;
  }
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t v = 0; v < kVectors; ++v) {
      C* c = x.c.first + (i + r) * x.c.stride + j + v * kLanes;
      const VecF sum{sums[r][v]};
      store(c, x.accumulate ? load(c, part) + sum : sum, part);
    }
}

template <class C, Order order, std::int64_t kVectors, class Part>
void columns(const Product<C>& x, std::int64_t m, std::int64_t j, Part part) {
  constexpr std::int64_t kRows = kMostRows<kVectors>;
  std::int64_t i = 0;
  for (; i + kRows <= m; i += kRows) block<C, order, kRows, kVectors>(x, i, j, part);
  for (; i + 4 <= m; i += 4) block<C, order, 4, kVectors>(x, i, j, part);
  for (; i < m; ++i) block<C, order, 1, kVectors>(x, i, j, part);
}

template <class C, Order order>
void product(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<const Pair> a, Matrix<const Pair> b,
             Matrix<C> c, bool accumulate) {
  constexpr std::int64_t kLanes = VecF::kLanes;
  const Product<C> x{k, a, b, c, accumulate};
  std::int64_t j = 0;
  for (; j + 4 * kLanes <= n; j += 4 * kLanes) columns<C, order, 4>(x, m, j, AllLanes{});
  for (; j + 2 * kLanes <= n; j += 2 * kLanes) columns<C, order, 2>(x, m, j, AllLanes{});
  for (; j + kLanes <= n; j += kLanes) columns<C, order, 1>(x, m, j, AllLanes{});
  if (j < n) columns<C, order, 1>(x, m, j, FirstLanes{n - j});
}

[[gnu::always_inline]] inline __m256i rounded(const float* x) {
  return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_loadu_ps(x)));
}

void narrow_rows(std::int64_t rows, std::int64_t n, Matrix<const float> x, Matrix<bf16> y) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t j = 0; j < n; j += VecF::kLanes)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(y.at(r, j).first), rounded(x.at(r, j).first));
}

void narrow_pairs(std::int64_t rows, std::int64_t n, Matrix<const float> x, Matrix<Pair> y) {
  for (std::int64_t r = 0; r < rows; r += 2)
    for (std::int64_t j = 0; j < n; j += VecF::kLanes) {
      const __m512i low = _mm512_cvtepu16_epi32(rounded(x.at(r, j).first));
      const __m512i high =
          r + 1 < rows ? _mm512_cvtepu16_epi32(rounded(x.at(r + 1, j).first)) : _mm512_setzero_si512();
      _mm512_storeu_si512(y.at(r / 2, j).first, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
    }
}

template <class C>
constexpr PairProducts<C> kProducts{.multiply = product<C, Order::kPlain>,
                                    .multiply_transposed = product<C, Order::kTransposed>};

}  // namespace

extern const PairTable kPairTable;
constexpr PairTable kPairTable{.wide = kProducts<float>,
                               .narrow = kProducts<bf16>,
                               .narrow_rows = narrow_rows,
                               .narrow_pairs = narrow_pairs};

}  // namespace dew::kernels::cpu::DEW_ISA
