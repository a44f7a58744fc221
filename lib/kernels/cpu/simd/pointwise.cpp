#include "kernels/cpu/simd/leaves.h"
#include "kernels/cpu/simd/vec_math.h"

namespace dew::kernels::cpu::DEW_ISA {

template <class T>
void add(const T* a, const T* b, T* y, std::int64_t n) {
  for_vectors<T>(
      n, [=](std::int64_t i, auto part) { store(y + i, load(a + i, part) + load(b + i, part), part); });
}

template <class T>
void blend(Real<T> keep, T* y, Real<T> take, const T* x, std::int64_t n) {
  const Lanes<T> k = broadcast(keep), t = broadcast(take);
  for_vectors<T>(n, [=](std::int64_t i, auto part) {
    store(y + i, k * load(y + i, part) + t * load(x + i, part), part);
  });
}

template <class T>
void exp(const T* x, T* y, std::int64_t n) {
  for_vectors<T>(n, [=](std::int64_t i, auto part) { store(y + i, exp(load(x + i, part)), part); });
}

template <class T>
void scale(T* x, double factor, std::int64_t n) {
  const Lanes<T> f = broadcast(static_cast<T>(factor));
  for_vectors<T>(n, [=](std::int64_t i, auto part) { store(x + i, load(x + i, part) * f, part); });
}

template <class T>
void lerp(T* average, const T* value, double weight, std::int64_t n) {
  const Lanes<T> w = broadcast(static_cast<T>(weight));
  for_vectors<T>(n, [=](std::int64_t i, auto part) {
    const Lanes<T> a = load(average + i, part);
    store(average + i, fma(w, load(value + i, part) - a, a), part);
  });
}

template <class T>
void swiglu_forward(const T* gate, const T* up, T* y, std::int64_t n) {
  for_vectors<T>(n, [=](std::int64_t i, auto part) {
    const Lanes<T> g = load(gate + i, part);
    store(y + i, g * sigmoid(g) * load(up + i, part), part);
  });
}

namespace {

template <class T, class Part>
[[gnu::always_inline]] inline void put(T* p, Lanes<T> x, bool accumulate, Part part) {
  store(p, accumulate ? load(p, part) + x : x, part);
}

}  // namespace

template <class T>
void swiglu_backward(const T* gate, const T* up, const T* dy, T* d_gate, bool add_gate, T* d_up, bool add_up,
                     std::int64_t n) {
  const Lanes<T> one = broadcast(Real<T>{1});
  for_vectors<T>(n, [=](std::int64_t i, auto part) {
    const Lanes<T> g = load(gate + i, part), u = load(up + i, part), d = load(dy + i, part);
    const Lanes<T> s = sigmoid(g);
    // d/dg of g s(g) is s + g s (1 - s).
    const Lanes<T> slope = fma(g * s, one - s, s);
    put(d_gate + i, d * u * slope, add_gate, part);
    put(d_up + i, d * (g * s), add_up, part);
  });
}

template void add(const float*, const float*, float*, std::int64_t);
template void blend(float, float*, float, const float*, std::int64_t);
template void add(const double*, const double*, double*, std::int64_t);
template void blend(double, double*, double, const double*, std::int64_t);
template void exp(const float*, float*, std::int64_t);
template void exp(const double*, double*, std::int64_t);
template void scale(float*, double, std::int64_t);
template void scale(double*, double, std::int64_t);
template void lerp(float*, const float*, double, std::int64_t);
template void lerp(double*, const double*, double, std::int64_t);
template void swiglu_forward(const float*, const float*, float*, std::int64_t);
template void swiglu_forward(const double*, const double*, double*, std::int64_t);
template void swiglu_backward(const float*, const float*, const float*, float*, bool, float*, bool,
                              std::int64_t);
template void swiglu_backward(const double*, const double*, const double*, double*, bool, double*, bool,
                              std::int64_t);

template void add(const bf16*, const bf16*, bf16*, std::int64_t);
template void blend(float, bf16*, float, const bf16*, std::int64_t);
template void swiglu_forward(const bf16*, const bf16*, bf16*, std::int64_t);
template void swiglu_backward(const bf16*, const bf16*, const bf16*, bf16*, bool, bf16*, bool, std::int64_t);

}  // namespace dew::kernels::cpu::DEW_ISA
