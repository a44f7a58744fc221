#include "kernels/cpu/simd/leaves.h"
#include "kernels/cpu/simd/vec_math.h"

namespace dew::kernels::cpu::DEW_ISA {

namespace {

// Two chains of sums hide the latency of fma; which element goes to which chain depends on its index alone.
template <class T, class Term>
[[gnu::always_inline]] inline T sum_row(std::int64_t n, Term term) {
  constexpr std::int64_t kLanes = Vec<T>::kLanes;
  Vec<T> even = zero<T>(), odd = zero<T>();
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

}  // namespace

template <class T>
T rms_forward(const T* x, const T* w, double eps, T* y, std::int64_t d) {
  const T squares = sum_row<T>(d, [=](std::int64_t i, Vec<T> sum, auto part) {
    const Vec<T> v = load(x + i, part);
    return fma(v, v, sum);
  });
  const double mean = static_cast<double>(squares) / static_cast<double>(d);
  const T inverse = static_cast<T>(1.0 / __builtin_sqrt(mean + eps));
  const Vec<T> r = broadcast(inverse);
  for_vectors<T>(
      d, [=](std::int64_t i, auto part) { store(y + i, load(x + i, part) * r * load(w + i, part), part); });
  return inverse;
}

// With g = dy w: dx = r (g - x r^2 mean(g x)).
template <class T>
void rms_backward(const T* x, const T* w, T inverse_rms, const T* dy, T* dx, bool accumulate,
                  std::int64_t d) {
  const T dot = sum_row<T>(d, [=](std::int64_t i, Vec<T> sum, auto part) {
    return fma(load(dy + i, part) * load(w + i, part), load(x + i, part), sum);
  });
  const Vec<T> r = broadcast(inverse_rms);
  const Vec<T> pull = broadcast(dot / static_cast<T>(d) * inverse_rms * inverse_rms);
  for_vectors<T>(d, [=](std::int64_t i, auto part) {
    const Vec<T> g = load(dy + i, part) * load(w + i, part);
    const Vec<T> result = r * (g - load(x + i, part) * pull);
    store(dx + i, accumulate ? load(dx + i, part) + result : result, part);
  });
}

template <>
void rms_weight_rows(const float* x, const float* inverse_rms, const float* dy, std::int64_t rows,
                     double* sums, std::int64_t d) {
  for_vectors<float>(d, [=](std::int64_t j, auto part) {
    LanePair sum = load_pair(sums + j, part);
    for (std::int64_t t = 0; t < rows; ++t) {
      const VecF g = load(dy + t * d + j, part) * (load(x + t * d + j, part) * broadcast(inverse_rms[t]));
      sum = {sum.low + widen_low(g), sum.high + widen_high(g)};
    }
    store_pair(sums + j, sum, part);
  });
}

template <>
void rms_weight_rows(const double* x, const double* inverse_rms, const double* dy, std::int64_t rows,
                     double* sums, std::int64_t d) {
  for_vectors<double>(d, [=](std::int64_t j, auto part) {
    VecD sum = load(sums + j, part);
    for (std::int64_t t = 0; t < rows; ++t)
      sum = fma(load(dy + t * d + j, part), load(x + t * d + j, part) * broadcast(inverse_rms[t]), sum);
    store(sums + j, sum, part);
  });
}

template float rms_forward(const float*, const float*, double, float*, std::int64_t);
template double rms_forward(const double*, const double*, double, double*, std::int64_t);
template void rms_backward(const float*, const float*, float, const float*, float*, bool, std::int64_t);
template void rms_backward(const double*, const double*, double, const double*, double*, bool, std::int64_t);

}  // namespace dew::kernels::cpu::DEW_ISA
