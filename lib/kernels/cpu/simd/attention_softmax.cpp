// The softmax between the products of attention, on tiles of transposed scores: keys as rows, queries as
// lanes.
#include "kernels/cpu/simd/attention_leaves.h"
#include "kernels/cpu/simd/vec_math.h"

namespace dew::kernels::cpu::DEW_ISA {
namespace {

template <class T>
constexpr T kInfinity = static_cast<T>(__builtin_inf());

template <class T>
constexpr T kLaneNumbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

[[gnu::always_inline]] inline VecF load_as(const float* p, float) {
  return load(p);
}
[[gnu::always_inline]] inline VecD load_as(const float* p, double) {
  return load_widened(p, AllLanes{});
}

/// x in the visible lanes of key row j, `hidden` in the others. Lane 0 of x is lane `begin` of the tile.
template <class T>
[[gnu::always_inline]] inline Vec<T> masked(const TileMask& mask, std::int64_t j, std::int64_t begin,
                                            Vec<T> x, T hidden) {
  constexpr std::int64_t kLanes = Vec<T>::kLanes;
  const std::int64_t first = mask.first + j - begin;
  const std::int64_t behind = first + mask.window;
  const Vec<T> lane = load(kLaneNumbers<T>), fill = broadcast(hidden);
  const T low = static_cast<T>(first < 0 ? 0 : first > kLanes ? kLanes : first);
  const T high = static_cast<T>(behind < 0 ? 0 : behind > kLanes ? kLanes : behind);
  const Vec<T> seen = select(lane < broadcast(low), fill, select(lane < broadcast(high), x, fill));
  if (mask.before == nullptr) return seen;
  const Vec<T> row = broadcast(static_cast<T>(mask.row + j));
  return select(row < load_as(mask.before + begin, T{}), fill, seen);
}

}  // namespace

template <class T>
void softmax_step(std::int64_t keys, std::int64_t width, const TileMask& mask, T scale, Matrix<T> scores,
                  T* largest, T* sum, T* factor) {
  const Vec<T> s = broadcast(scale);
  for (std::int64_t i = 0; i < width; i += Vec<T>::kLanes) {
    const Vec<T> earlier = load(largest + i);
    Vec<T> best = broadcast(-kInfinity<T>);
    T* row = scores.first + i;
    for (std::int64_t j = 0; j < keys; ++j, row += scores.stride) {
      Vec<T> x = load(row);
      if (mask.partial) {
        x = masked(mask, j, i, x, -kInfinity<T>);
        store(row, x);
      }
      best = max(x, best);
    }
    best = max(earlier, best * s);
    // A query that has seen no key yet: its exponentials are 0, not those of infinity minus infinity.
    const Vec<T> base = select(best == broadcast(-kInfinity<T>), zero<T>(), best);
    Vec<T> added = zero<T>();
    row = scores.first + i;
    for (std::int64_t j = 0; j < keys; ++j, row += scores.stride) {
      const Vec<T> p = exp(fma(load(row), s, -base));
      added = added + p;
      store(row, p);
    }
    const Vec<T> shrink = exp(earlier - base);
    store(factor + i, shrink);
    store(sum + i, fma(load(sum + i), shrink, added));
    store(largest + i, best);
  }
}

template <class T>
void softmax_gradient(std::int64_t keys, std::int64_t width, const TileMask& mask, T scale, T d_scale,
                      Matrix<T> scores, Matrix<T> d_p, const T* log_sum_exp, const T* delta) {
  for (std::int64_t i = 0; i < width; i += Vec<T>::kLanes) {
    const Vec<T> base = load(log_sum_exp + i), mean = load(delta + i), s = broadcast(scale),
                 d_s = broadcast(d_scale);
    for (std::int64_t j = 0; j < keys; ++j) {
      T* score = scores.first + j * scores.stride + i;
      T* d = d_p.first + j * d_p.stride + i;
      Vec<T> p = exp(fma(load(score), s, -base));
      if (mask.partial) p = masked(mask, j, i, p, T{0});
      store(score, p);
      store(d, p * (load(d) - mean) * d_s);
    }
  }
}

template <class T>
void scale_rows(std::int64_t rows, std::int64_t n, const T* factor, Matrix<const T> x, Matrix<T> y,
                bool accumulate) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* from = x.first + r * x.stride;
    T* to = y.first + r * y.stride;
    const Vec<T> f = broadcast(factor[r]);
    for_vectors<T>(n, [=](std::int64_t i, auto part) {
      const Vec<T> scaled = f * load(from + i, part);
      store(to + i, accumulate ? load(to + i, part) + scaled : scaled, part);
    });
  }
}

template <class T>
void dot_rows(std::int64_t rows, std::int64_t n, Matrix<const T> x, Matrix<const T> y, T* sums) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* a = x.first + r * x.stride;
    const T* b = y.first + r * y.stride;
    Vec<T> sum = zero<T>();
    for_vectors<T>(n,
                   [&](std::int64_t i, auto part) { sum = fma(load(a + i, part), load(b + i, part), sum); });
    sums[r] = reduce_add(sum);
  }
}

#define DEW_INSTANTIATE(T)                                                                                \
  template void softmax_step(std::int64_t, std::int64_t, const TileMask&, T, Matrix<T>, T*, T*, T*);      \
  template void softmax_gradient(std::int64_t, std::int64_t, const TileMask&, T, T, Matrix<T>, Matrix<T>, \
                                 const T*, const T*);                                                     \
  template void scale_rows(std::int64_t, std::int64_t, const T*, Matrix<const T>, Matrix<T>, bool);       \
  template void dot_rows(std::int64_t, std::int64_t, Matrix<const T>, Matrix<const T>, T*);
DEW_INSTANTIATE(float)
DEW_INSTANTIATE(double)
#undef DEW_INSTANTIATE

}  // namespace dew::kernels::cpu::DEW_ISA
