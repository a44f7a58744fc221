#include "kernels/cpu/simd/leaves.h"
#include "kernels/cpu/simd/vec_math.h"

namespace dew::kernels::cpu::DEW_ISA {

template <class T>
void rope_heads(const T* x, const Real<T>* cosine, const Real<T>* sine, bool inverse, T* y, bool accumulate,
                std::int64_t heads, std::int64_t half) {
  for_vectors<T>(half, [=](std::int64_t i, auto part) {
    const Lanes<T> c = load(cosine + i, part);
    const Lanes<T> s = inverse ? -load(sine + i, part) : load(sine + i, part);
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t first = h * 2 * half + i, second = first + half;
      const Lanes<T> a = load(x + first, part), b = load(x + second, part);
      Lanes<T> p = fma(a, c, -(b * s)), q = fma(b, c, a * s);
      if (accumulate) {
        p = p + load(y + first, part);
        q = q + load(y + second, part);
      }
      store(y + first, p, part);
      store(y + second, q, part);
    }
  });
}

template void rope_heads(const float*, const float*, const float*, bool, float*, bool, std::int64_t,
                         std::int64_t);
template void rope_heads(const double*, const double*, const double*, bool, double*, bool, std::int64_t,
                         std::int64_t);

template void rope_heads(const bf16*, const float*, const float*, bool, bf16*, bool, std::int64_t,
                         std::int64_t);

}  // namespace dew::kernels::cpu::DEW_ISA
