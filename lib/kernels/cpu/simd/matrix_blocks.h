// Small matrix products whose operands fit the nearest caches: blocks of c in registers, a broadcast element
// by element, b read as it lies. What an element is, an `Arithmetic` says:
//   Element, Result   of a and b, of c
//   Left, Right, Sum  an element of a in all lanes, a vector of b, a vector of sums
//   none(), left(p), right(p, part), add(left, right, sum), put(c, sum, accumulate, part)
#pragma once

#include "kernels/cpu/simd/matrix_table.h"
#include "kernels/cpu/simd/vec.h"

namespace dew::kernels::cpu::DEW_ISA {

enum class Order : bool { kPlain, kTransposed };

/// Vectors side by side in a register block, and rows of it: accumulators, the vectors of b and one of a fill
/// the registers, 32 of one Vec each with AVX-512, 8 pairs with AVX2.
#ifdef __AVX512F__
inline constexpr std::int64_t kWidest = 4;
template <std::int64_t kVectors>
inline constexpr std::int64_t kMostRows = kVectors == 4 ? 6 : 12;
#else
inline constexpr std::int64_t kWidest = 1;
template <std::int64_t kVectors>
inline constexpr std::int64_t kMostRows = 6;
#endif

/// Operands of a product, with the inner dimension.
template <class Arithmetic>
struct BlockProduct {
  std::int64_t k;
  Matrix<const typename Arithmetic::Element> a, b;
  Matrix<typename Arithmetic::Result> c;
  bool accumulate;
};

/// Rows [i, i + kRows) and kVectors vectors from column j of c.
template <class Arithmetic, Order order, std::int64_t kRows, std::int64_t kVectors, class Part>
[[gnu::always_inline]] inline void multiply_block(const BlockProduct<Arithmetic>& x, std::int64_t i,
                                                  std::int64_t j, Part part) {
  constexpr std::int64_t kLanes = Arithmetic::kLanes;
  const std::int64_t row_step = order == Order::kPlain ? x.a.stride : 1;
  const std::int64_t inner_step = order == Order::kPlain ? 1 : x.a.stride;
  const auto* a = x.a.first + i * row_step;
  const auto* b = x.b.first + j;
  typename Arithmetic::Sum sums[kRows][kVectors];
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t v = 0; v < kVectors; ++v) sums[r][v] = Arithmetic::none();
  // What is added to at the end may lie far away.
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t v = 0; v < kVectors; ++v)
      __builtin_prefetch(x.c.first + (i + r) * x.c.stride + j + v * kLanes, 1);
  for (std::int64_t p = 0; p < x.k; ++p) {
    typename Arithmetic::Right right[kVectors];
    for (std::int64_t v = 0; v < kVectors; ++v) right[v] = Arithmetic::right(b + v * kLanes, part);
    for (std::int64_t r = 0; r < kRows; ++r) {
      const typename Arithmetic::Left left = Arithmetic::left(a + r * row_step);
      for (std::int64_t v = 0; v < kVectors; ++v) sums[r][v] = Arithmetic::add(left, right[v], sums[r][v]);
    }
    a += inner_step;
    b += x.b.stride;
  }
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t v = 0; v < kVectors; ++v)
      Arithmetic::put(x.c.first + (i + r) * x.c.stride + j + v * kLanes, sums[r][v], x.accumulate, part);
}

template <class Arithmetic, Order order, std::int64_t kVectors, class Part>
void multiply_columns(const BlockProduct<Arithmetic>& x, std::int64_t m, std::int64_t j, Part part) {
  constexpr std::int64_t kRows = kMostRows<kVectors>;
  std::int64_t i = 0;
  for (; i + kRows <= m; i += kRows) multiply_block<Arithmetic, order, kRows, kVectors>(x, i, j, part);
  for (; i + 4 <= m; i += 4) multiply_block<Arithmetic, order, 4, kVectors>(x, i, j, part);
  for (; i < m; ++i) multiply_block<Arithmetic, order, 1, kVectors>(x, i, j, part);
}

/// c [m, n] (+)= a b over k elements.
template <class Arithmetic, Order order>
void multiply_blocks(const BlockProduct<Arithmetic>& x, std::int64_t m, std::int64_t n) {
  constexpr std::int64_t kLanes = Arithmetic::kLanes;
  std::int64_t j = 0;
  if constexpr (kWidest >= 4)
    for (; j + 4 * kLanes <= n; j += 4 * kLanes) multiply_columns<Arithmetic, order, 4>(x, m, j, AllLanes{});
  if constexpr (kWidest >= 2)
    for (; j + 2 * kLanes <= n; j += 2 * kLanes) multiply_columns<Arithmetic, order, 2>(x, m, j, AllLanes{});
  for (; j + kLanes <= n; j += kLanes) multiply_columns<Arithmetic, order, 1>(x, m, j, AllLanes{});
  if (j < n) multiply_columns<Arithmetic, order, 1>(x, m, j, FirstLanes{n - j});
}

}  // namespace dew::kernels::cpu::DEW_ISA
