#include "kernels/cpu/simd/leaves.h"
#include "kernels/cpu/simd/vec_math.h"

namespace dew::kernels::cpu::DEW_ISA {

template <class T>
void sum_in_order(const T* const* terms, std::int64_t count, T* y, bool accumulate, std::int64_t begin,
                  std::int64_t end) {
  for_vectors<T>(end - begin, [=](std::int64_t i, auto part) {
    const std::int64_t at = begin + i;
    Lanes<T> sum = load((accumulate ? y : terms[0]) + at, part);
    for (std::int64_t k = accumulate ? 0 : 1; k < count; ++k) sum = sum + load(terms[k] + at, part);
    store(y + at, sum, part);
  });
}

// The squares of f32 values are exact in f64.
template <>
double sum_of_squares(const float* x, std::int64_t n) {
  VecD low = zero<double>(), high = zero<double>();
  for_vectors<float>(n, [&](std::int64_t i, auto part) {
    const VecF v = load(x + i, part);
    const VecD a = widen_low(v), b = widen_high(v);
    low = fma(a, a, low);
    high = fma(b, b, high);
  });
  return reduce_add(low + high);
}

template <>
double sum_of_squares(const double* x, std::int64_t n) {
  VecD sum = zero<double>();
  for_vectors<double>(n, [&](std::int64_t i, auto part) {
    const VecD v = load(x + i, part);
    sum = fma(v, v, sum);
  });
  return reduce_add(sum);
}

namespace {

/// Elements of x in the vector of To's loops.
template <class Part>
[[gnu::always_inline]] inline VecD load_for(const float* p, const double*, Part part) {
  return load_widened(p, part);
}
[[gnu::always_inline]] inline VecD load_for(const bf16* p, const double*, AllLanes) {
  return widen_low(load(p, FirstLanes{VecD::kLanes}));
}
[[gnu::always_inline]] inline VecD load_for(const bf16* p, const double*, FirstLanes part) {
  return widen_low(load(p, part));
}
template <class Part>
[[gnu::always_inline]] inline VecF load_for(const bf16* p, const float*, Part part) {
  return load(p, part);
}

}  // namespace

template <class From, class To>
void add_widened(const From* x, To* y, std::int64_t n) {
  for_vectors<To>(n, [=](std::int64_t i, auto part) {
    store(y + i, load(y + i, part) + load_for(x + i, y, part), part);
  });
}

template <class From, class To>
void cast(const From* x, To* y, std::int64_t n) {
  for_vectors<To>(n, [=](std::int64_t i, auto part) { store(y + i, load_for(x + i, y, part), part); });
}
template <>
void cast(const float* x, bf16* y, std::int64_t n) {
  for_vectors<float>(n, [=](std::int64_t i, auto part) { store(y + i, load(x + i, part), part); });
}
template <>
void cast(const double* x, bf16* y, std::int64_t n) {
  for_vectors<float>(n, [=](std::int64_t i, auto part) {
    const LanePair pair = load_pair(x + i, part);
    store(y + i, narrow(pair.low, pair.high), part);
  });
}

template void add_widened(const float*, double*, std::int64_t);
template void add_widened(const bf16*, float*, std::int64_t);
template void add_widened(const bf16*, double*, std::int64_t);
template void cast(const float*, double*, std::int64_t);
template void cast(const bf16*, float*, std::int64_t);
template void cast(const bf16*, double*, std::int64_t);
template void sum_in_order(const bf16* const*, std::int64_t, bf16*, bool, std::int64_t, std::int64_t);
template void sum_in_order(const float* const*, std::int64_t, float*, bool, std::int64_t, std::int64_t);
template void sum_in_order(const double* const*, std::int64_t, double*, bool, std::int64_t, std::int64_t);

}  // namespace dew::kernels::cpu::DEW_ISA
