// Small matrix products whose operands fit the nearest caches: blocks of c in registers, a broadcast element
// by element, b read as it lies.
#include "kernels/cpu/simd/matrix_leaves.h"
#include "kernels/cpu/simd/vec.h"

namespace dew::kernels::cpu::DEW_ISA {
namespace {

enum class Order : bool { kPlain, kTransposed };

/// Vectors side by side in a register block, and rows of it: accumulators, the vectors of b and one of a fill
/// the registers, 32 of one Vec each with AVX-512, 8 pairs with AVX2.
#ifdef __AVX512F__
constexpr std::int64_t kWidest = 4;
template <std::int64_t kVectors>
constexpr std::int64_t kMostRows = kVectors == 4 ? 6 : 12;
#else
constexpr std::int64_t kWidest = 1;
template <std::int64_t kVectors>
constexpr std::int64_t kMostRows = 6;
#endif

/// Operands of a product, with the inner dimension.
template <class T>
struct Product {
  std::int64_t k;
  Matrix<const T> a, b;
  Matrix<T> c;
  bool accumulate;
};

/// Rows [i, i + kRows) and kVectors vectors from column j of c.
template <class T, Order order, std::int64_t kRows, std::int64_t kVectors, class Part>
[[gnu::always_inline]] inline void block(const Product<T>& x, std::int64_t i, std::int64_t j, Part part) {
  constexpr std::int64_t kLanes = Vec<T>::kLanes;
  const std::int64_t row_step = order == Order::kPlain ? x.a.stride : 1;
  const std::int64_t inner_step = order == Order::kPlain ? 1 : x.a.stride;
  const T* a = x.a.first + i * row_step;
  const T* b = x.b.first + j;
  Vec<T> sums[kRows][kVectors];
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t v = 0; v < kVectors; ++v) sums[r][v] = zero<T>();
  // What is added to at the end may lie far away.
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t v = 0; v < kVectors; ++v)
      __builtin_prefetch(x.c.first + (i + r) * x.c.stride + j + v * kLanes, 1);
  for (std::int64_t p = 0; p < x.k; ++p) {
    Vec<T> right[kVectors];
    for (std::int64_t v = 0; v < kVectors; ++v) right[v] = load(b + v * kLanes, part);
    for (std::int64_t r = 0; r < kRows; ++r) {
      const Vec<T> left = broadcast(a[r * row_step]);
      for (std::int64_t v = 0; v < kVectors; ++v) sums[r][v] = fma(left, right[v], sums[r][v]);
    }
    a += inner_step;
    b += x.b.stride;
  }
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t v = 0; v < kVectors; ++v) {
      T* c = x.c.first + (i + r) * x.c.stride + j + v * kLanes;
      store(c, x.accumulate ? load(c, part) + sums[r][v] : sums[r][v], part);
    }
}

template <class T, Order order, std::int64_t kVectors, class Part>
void columns(const Product<T>& x, std::int64_t m, std::int64_t j, Part part) {
  constexpr std::int64_t kRows = kMostRows<kVectors>;
  std::int64_t i = 0;
  for (; i + kRows <= m; i += kRows) block<T, order, kRows, kVectors>(x, i, j, part);
  for (; i + 4 <= m; i += 4) block<T, order, 4, kVectors>(x, i, j, part);
  for (; i < m; ++i) block<T, order, 1, kVectors>(x, i, j, part);
}

template <class T, Order order>
void product(const Product<T>& x, std::int64_t m, std::int64_t n) {
  constexpr std::int64_t kLanes = Vec<T>::kLanes;
  std::int64_t j = 0;
  if constexpr (kWidest >= 4)
    for (; j + 4 * kLanes <= n; j += 4 * kLanes) columns<T, order, 4>(x, m, j, AllLanes{});
  if constexpr (kWidest >= 2)
    for (; j + 2 * kLanes <= n; j += 2 * kLanes) columns<T, order, 2>(x, m, j, AllLanes{});
  for (; j + kLanes <= n; j += kLanes) columns<T, order, 1>(x, m, j, AllLanes{});
  if (j < n) columns<T, order, 1>(x, m, j, FirstLanes{n - j});
}

}  // namespace

template <class T>
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<const T> a, Matrix<const T> b,
              Matrix<T> c, bool accumulate) {
  product<T, Order::kPlain>({k, a, b, c, accumulate}, m, n);
}

template <class T>
void multiply_transposed(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<const T> a, Matrix<const T> b,
                         Matrix<T> c, bool accumulate) {
  product<T, Order::kTransposed>({k, a, b, c, accumulate}, m, n);
}

template void multiply(std::int64_t, std::int64_t, std::int64_t, Matrix<const float>, Matrix<const float>,
                       Matrix<float>, bool);
template void multiply(std::int64_t, std::int64_t, std::int64_t, Matrix<const double>, Matrix<const double>,
                       Matrix<double>, bool);
template void multiply_transposed(std::int64_t, std::int64_t, std::int64_t, Matrix<const float>,
                                  Matrix<const float>, Matrix<float>, bool);
template void multiply_transposed(std::int64_t, std::int64_t, std::int64_t, Matrix<const double>,
                                  Matrix<const double>, Matrix<double>, bool);

}  // namespace dew::kernels::cpu::DEW_ISA
