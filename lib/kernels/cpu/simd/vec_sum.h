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

/// sums[j] += the sum over a few rows of term(row, j, part): of f32 in f32 over these rows, added to the f64
/// sums.
template <class Term>
[[gnu::always_inline]] inline void add_rows_of(const float*, std::int64_t rows, std::int64_t d, double* sums,
                                               Term term) {
  for_vectors<float>(d, [=](std::int64_t j, auto part) {
    VecF few = zero<float>();
    for (std::int64_t t = 0; t < rows; ++t) few = few + term(t, j, part);
    const LanePair sum = load_pair(sums + j, part);
    store_pair(sums + j, {sum.low + widen_low(few), sum.high + widen_high(few)}, part);
  });
}
template <class Term>
[[gnu::always_inline]] inline void add_rows_of(const bf16*, std::int64_t rows, std::int64_t d, double* sums,
                                               Term term) {
  add_rows_of(static_cast<const float*>(nullptr), rows, d, sums, term);
}
template <class Term>
[[gnu::always_inline]] inline void add_rows_of(const double*, std::int64_t rows, std::int64_t d, double* sums,
                                               Term term) {
  for_vectors<double>(d, [=](std::int64_t j, auto part) {
    VecD sum = load(sums + j, part);
    for (std::int64_t t = 0; t < rows; ++t) sum = sum + term(t, j, part);
    store(sums + j, sum, part);
  });
}

}  // namespace dew::kernels::cpu::DEW_ISA
