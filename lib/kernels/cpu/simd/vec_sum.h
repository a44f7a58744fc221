// Sums over the elements of a row.
#pragma once

#include "kernels/cpu/simd/vec_math.h"

namespace dew::kernels::cpu::DEW_ISA {

/// Sum over i of what `term(i, sum, part)` adds to `sum`. Two chains of sums hide the latency of fma; which
/// element goes to which chain depends on its index alone.
template <class T, class Term>
[[gnu::always_inline]] inline Real<T> sum_row(std::int64_t n, Term term) {
  constexpr std::int64_t kLanes = Lanes<T>::kLanes;
  Lanes<T> even = zero<Real<T>>(), odd = zero<Real<T>>();
  std::int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    even = term(i, even, AllLanes{});
    odd = term(i + kLanes, odd, AllLanes{});
  }
  if (i + kLanes <= n) {
    even = term(i, even, AllLanes{});
    i += kLanes;
    if (i < n) odd = term(i, odd, FirstLanes{n - i});
  } else if (i < n) {
    even = term(i, even, FirstLanes{n - i});
  }
  return reduce_add(even + odd);
}

/// Two sums of vectors, in one pass over a row.
template <class T>
struct VecPair {
  Lanes<T> first = zero<Real<T>>(), second = zero<Real<T>>();
};
template <class T>
struct RowPair {
  Real<T> first, second;
};

/// As sum_row, for a term that adds to two sums.
template <class T, class Term>
[[gnu::always_inline]] inline RowPair<T> sum_row_twice(std::int64_t n, Term term) {
  constexpr std::int64_t kLanes = Lanes<T>::kLanes;
  VecPair<T> even, odd;
  std::int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    term(i, even, AllLanes{});
    term(i + kLanes, odd, AllLanes{});
  }
  if (i + kLanes <= n) {
    term(i, even, AllLanes{});
    i += kLanes;
    if (i < n) term(i, odd, FirstLanes{n - i});
  } else if (i < n) {
    term(i, even, FirstLanes{n - i});
  }
  return {reduce_add(even.first + odd.first), reduce_add(even.second + odd.second)};
}

}  // namespace dew::kernels::cpu::DEW_ISA
