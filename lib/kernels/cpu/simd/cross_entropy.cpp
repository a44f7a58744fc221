#include "kernels/cpu/simd/leaves.h"
#include "kernels/cpu/simd/vec_math.h"

namespace dew::kernels::cpu::DEW_ISA {

namespace {

// NaN is passed over here and comes through in the sum.
template <class T>
[[gnu::always_inline]] inline T largest_of(const T* x, std::int64_t n) {
  const T lowest = -static_cast<T>(__builtin_inf());
  Vec<T> best = broadcast(lowest);
  for_vectors<T>(n, [&](std::int64_t i, auto part) { best = max(load(x + i, part, lowest), best); });
  return reduce_max(best);
}

/// The sum of a row's vectors: of f32 in f32 over a few, which are added up in f64.
struct LaneSums {
  static constexpr int kFew = 8;
  VecD low = zero<double>(), high = zero<double>();
  VecF few = zero<float>();
  int taken = 0;

  [[gnu::always_inline]] void take(VecF e) {
    few = few + e;
    if (++taken == kFew) settle();
  }
  [[gnu::always_inline]] void take(VecD e) { low = low + e; }
  [[gnu::always_inline]] void settle() {
    low = low + widen_low(few);
    high = high + widen_high(few);
    few = zero<float>();
    taken = 0;
  }
  [[gnu::always_inline]] double total() {
    settle();
    return reduce_add(low + high);
  }
};

template <class T, class Keep>
[[gnu::always_inline]] inline RowSum sum_exp(const T* x, std::int64_t n, Keep keep) {
  const T lowest = -static_cast<T>(__builtin_inf());
  const T largest = largest_of(x, n);
  const Vec<T> shift = broadcast(largest);
  LaneSums sums;
  for_vectors<T>(n, [&](std::int64_t i, auto part) {
    prefetch(x, n + i);  // the next row, while this one takes its time
    const Vec<T> e = exp(load(x + i, part, lowest) - shift);
    keep(i, e, part);
    sums.take(e);
  });
  return {static_cast<double>(largest), sums.total()};
}

}  // namespace

template <class T>
RowSum log_sum_exp_row(const T* x, std::int64_t n) {
  return sum_exp(x, n, [](std::int64_t, Vec<T>, auto) {});
}

template <class T>
RowSum exp_row(T* x, std::int64_t n) {
  return sum_exp(x, n, [=](std::int64_t i, Vec<T> e, auto part) { store(x + i, e, part); });
}

template RowSum log_sum_exp_row(const float*, std::int64_t);
template RowSum log_sum_exp_row(const double*, std::int64_t);
template RowSum exp_row(float*, std::int64_t);
template RowSum exp_row(double*, std::int64_t);

}  // namespace dew::kernels::cpu::DEW_ISA
