#include "kernels/cpu/simd/leaves.h"
#include "kernels/cpu/simd/vec_math.h"

namespace dew::kernels::cpu::DEW_ISA {

template <class T>
void adamw(const AdamWConstants& c, const T* gradient, T* w, T* m, T* v, std::int64_t n) {
  const auto constant = [](double x) { return broadcast(static_cast<T>(x)); };
  const Vec<T> gradient_scale = constant(c.gradient_scale), decay = constant(c.decay), eps = constant(c.eps);
  const Vec<T> beta1 = constant(c.beta1), rest1 = constant(c.one_minus_beta1);
  const Vec<T> beta2 = constant(c.beta2), rest2 = constant(c.one_minus_beta2);
  const Vec<T> step_size = constant(c.step_size), correction = constant(c.inverse_sqrt_correction);
  for_vectors<T>(n, [=](std::int64_t i, auto part) {
    const Vec<T> g = load(gradient + i, part) * gradient_scale;
    const Vec<T> mean = fma(beta1, load(m + i, part), rest1 * g);
    const Vec<T> square = fma(beta2, load(v + i, part), rest2 * g * g);
    const Vec<T> kept = load(w + i, part) * decay;
    store(m + i, mean, part);
    store(v + i, square, part);
    store(w + i, kept - step_size * mean / fma(sqrt(square), correction, eps), part);
  });
}

template void adamw(const AdamWConstants&, const float*, float*, float*, float*, std::int64_t);
template void adamw(const AdamWConstants&, const double*, double*, double*, double*, std::int64_t);

}  // namespace dew::kernels::cpu::DEW_ISA
