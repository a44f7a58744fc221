#include "kernels/cpu/simd/leaves.h"
#include "kernels/cpu/simd/vec_sum.h"

namespace dew::kernels::cpu::DEW_ISA {

template <class T>
Moments<Real<T>> layer_norm_forward(const T* x, const T* w, const T* b, double eps, T* y, std::int64_t d) {
  const Real<T> sum =
      sum_row<T>(d, [=](std::int64_t i, Lanes<T> total, auto part) { return total + load(x + i, part); });
  const Real<T> mean = static_cast<Real<T>>(static_cast<double>(sum) / static_cast<double>(d));
  const Lanes<T> m = broadcast(mean);
  // Lanes past the end are filled with the mean: they add nothing.
  const Real<T> squares = sum_row<T>(d, [=](std::int64_t i, Lanes<T> total, auto part) {
    const Lanes<T> v = load(x + i, part, mean) - m;
    return fma(v, v, total);
  });
  const double variance = static_cast<double>(squares) / static_cast<double>(d);
  const Real<T> inverse = static_cast<Real<T>>(1.0 / __builtin_sqrt(variance + eps));
  const Lanes<T> r = broadcast(inverse);
  for_vectors<T>(d, [=](std::int64_t i, auto part) {
    prefetch(x, d + i);
    const Lanes<T> scaled = (load(x + i, part) - m) * r * load(w + i, part);
    store(y + i, b != nullptr ? scaled + load(b + i, part) : scaled, part);
  });
  return {mean, inverse};
}

// With n = (x - mean) r and g = dy w: dx = r (g - mean(g) - n mean(g n)).
template <class T>
void layer_norm_backward(const T* x, const T* w, Moments<Real<T>> moments, const T* dy, T* dx,
                         bool accumulate, Real<T>* weight_sums, Real<T>* bias_sums, std::int64_t d) {
  const Lanes<T> m = broadcast(moments.mean), r = broadcast(moments.inverse);
  const RowPair<T> sums = sum_row_twice<T>(d, [=](std::int64_t i, VecPair<T>& total, auto part) {
    const Lanes<T> g = load(dy + i, part) * load(w + i, part);
    total.first = total.first + g;
    total.second = fma(g, (load(x + i, part) - m) * r, total.second);
  });
  const Lanes<T> shift = broadcast(sums.first / static_cast<Real<T>>(d)),
                 pull = broadcast(sums.second / static_cast<Real<T>>(d));
  for_vectors<T>(d, [=](std::int64_t i, auto part) {
    prefetch(x, d + i);
    prefetch(dy, d + i);
    const Lanes<T> dy_i = load(dy + i, part), n = (load(x + i, part) - m) * r;
    store(weight_sums + i, load(weight_sums + i, part) + dy_i * n, part);
    if (bias_sums != nullptr) store(bias_sums + i, load(bias_sums + i, part) + dy_i, part);
    const Lanes<T> result = r * (dy_i * load(w + i, part) - shift - n * pull);
    store(dx + i, accumulate ? load(dx + i, part) + result : result, part);
  });
}

#define DEW_INSTANTIATE(T)                                                                              \
  template Moments<Real<T>> layer_norm_forward(const T*, const T*, const T*, double, T*, std::int64_t); \
  template void layer_norm_backward(const T*, const T*, Moments<Real<T>>, const T*, T*, bool, Real<T>*, \
                                    Real<T>*, std::int64_t);
DEW_INSTANTIATE(float)
DEW_INSTANTIATE(double)
DEW_INSTANTIATE(bf16)
#undef DEW_INSTANTIATE

}  // namespace dew::kernels::cpu::DEW_ISA
