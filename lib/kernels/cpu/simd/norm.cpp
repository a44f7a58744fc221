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
  for_vectors<T>(d, [=](std::int64_t i, auto part) {
    prefetch(x, d + i);
    store(y + i, load(x + i, part) * r * load(w + i, part), part);
  });
  return inverse;
}

// With g = dy w: dx = r (g - x r^2 mean(g x)).
template <class T>
void rms_backward(const T* x, const T* w, Real<T> inverse_rms, const T* dy, T* dx, bool accumulate,
                  Real<T>* sums, std::int64_t d) {
  const Real<T> dot = sum_row<T>(d, [=](std::int64_t i, Lanes<T> sum, auto part) {
    return fma(load(dy + i, part) * load(w + i, part), load(x + i, part), sum);
  });
  const Lanes<T> r = broadcast(inverse_rms);
  const Lanes<T> pull = broadcast(dot / static_cast<Real<T>>(d) * inverse_rms * inverse_rms);
  for_vectors<T>(d, [=](std::int64_t i, auto part) {
    prefetch(x, d + i);
    prefetch(dy, d + i);
    const Lanes<T> x_i = load(x + i, part), dy_i = load(dy + i, part);
    store(sums + i, load(sums + i, part) + dy_i * (x_i * r), part);
    const Lanes<T> result = r * (dy_i * load(w + i, part) - x_i * pull);
    store(dx + i, accumulate ? load(dx + i, part) + result : result, part);
  });
}

#define DEW_INSTANTIATE(T)                                                    \
  template Real<T> rms_forward(const T*, const T*, double, T*, std::int64_t); \
  template void rms_backward(const T*, const T*, Real<T>, const T*, T*, bool, Real<T>*, std::int64_t);
DEW_INSTANTIATE(float)
DEW_INSTANTIATE(double)
DEW_INSTANTIATE(bf16)
#undef DEW_INSTANTIATE

}  // namespace dew::kernels::cpu::DEW_ISA
