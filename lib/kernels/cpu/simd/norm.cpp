#include "kernels/cpu/simd/leaves.h"
#include "kernels/cpu/simd/vec_sum.h"

namespace dew::kernels::cpu::DEW_ISA {

template <class T>
Real<T> rms_forward(const T* x, const T* w, double eps, T* y, std::int64_t d) {
  const Real<T> squares = sum_row<T>(d, [=](std::int64_t i, Lanes<T> sum, auto part) {
    const Lanes<T> v = load(x + i, part);
    return fma(v, v, sum);
  });
  const double mean = static_cast<double>(squares) / static_cast<double>(d);
  const Real<T> inverse = static_cast<Real<T>>(1.0 / __builtin_sqrt(mean + eps));
  const Lanes<T> r = broadcast(inverse);
  for_vectors<T>(
      d, [=](std::int64_t i, auto part) { store(y + i, load(x + i, part) * r * load(w + i, part), part); });
  return inverse;
}

// With g = dy w: dx = r (g - x r^2 mean(g x)).
template <class T>
void rms_backward(const T* x, const T* w, Real<T> inverse_rms, const T* dy, T* dx, bool accumulate,
                  std::int64_t d) {
  const Real<T> dot = sum_row<T>(d, [=](std::int64_t i, Lanes<T> sum, auto part) {
    return fma(load(dy + i, part) * load(w + i, part), load(x + i, part), sum);
  });
  const Lanes<T> r = broadcast(inverse_rms);
  const Lanes<T> pull = broadcast(dot / static_cast<Real<T>>(d) * inverse_rms * inverse_rms);
  for_vectors<T>(d, [=](std::int64_t i, auto part) {
    const Lanes<T> g = load(dy + i, part) * load(w + i, part);
    const Lanes<T> result = r * (g - load(x + i, part) * pull);
    store(dx + i, accumulate ? load(dx + i, part) + result : result, part);
  });
}

template <class T>
void rms_weight_rows(const T* x, const Real<T>* inverse_rms, const T* dy, std::int64_t rows, double* sums,
                     std::int64_t d) {
  add_rows_of(x, rows, d, sums, [=](std::int64_t t, std::int64_t j, auto part) {
    return load(dy + t * d + j, part) * (load(x + t * d + j, part) * broadcast(inverse_rms[t]));
  });
}

template float rms_forward(const float*, const float*, double, float*, std::int64_t);
template double rms_forward(const double*, const double*, double, double*, std::int64_t);
template void rms_backward(const float*, const float*, float, const float*, float*, bool, std::int64_t);
template void rms_backward(const double*, const double*, double, const double*, double*, bool, std::int64_t);

template void rms_weight_rows(const float*, const float*, const float*, std::int64_t, double*, std::int64_t);
template void rms_weight_rows(const double*, const double*, const double*, std::int64_t, double*,
                              std::int64_t);

template float rms_forward(const bf16*, const bf16*, double, bf16*, std::int64_t);
template void rms_backward(const bf16*, const bf16*, float, const bf16*, bf16*, bool, std::int64_t);
template void rms_weight_rows(const bf16*, const float*, const bf16*, std::int64_t, double*, std::int64_t);

}  // namespace dew::kernels::cpu::DEW_ISA
