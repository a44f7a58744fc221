#include "kernels/cpu/simd/leaves.h"
#include "kernels/cpu/simd/vec_math.h"

namespace dew::kernels::cpu::DEW_ISA {

namespace {

// erfc(z) = t exp(P(2 t - 1) - z^2) with t = 2 / (2 + z), z >= 0: the Chebyshev fit of log(erfc(z) / t) + z^2
// over t in (0, 1], in powers of 2 t - 1, lowest first. The fits leave out 1.1e-8 (f32) and 3.1e-18 (f64).
constexpr float kErfcF[] = {-0.671794092f,    0.672643155f,    0.0473438876f,   -0.0468936406f,
                            -0.00988001932f,  0.00880882537f,  0.00179406625f,  -0.00228876524f,
                            -0.000227910966f, 0.000573766372f, 8.00073816e-06f, -8.72838102e-05f};
constexpr double kErfcD[] = {
    -0.67179408405669228,    0.67264322397765675,     0.04734330684190443,     -0.046895610231175298,
    -0.0098726893663899588,  0.0088249385570606225,   0.001758933557799016,    -0.0023458125004828531,
    -0.00014624686337800336, 0.00067367879558023498,  -9.3735031170981699e-05, -0.00017430294720307621,
    7.1401014127570305e-05,  3.1745179749437403e-05,  -3.0187884551394243e-05, 1.3772664134464417e-07,
    8.5626234201212856e-06,  -2.9479868769982591e-06, -1.2723119048688699e-06, 1.2500276612569754e-06,
    -1.6849800720653297e-07, -2.4958327617196671e-07, 1.5334345920908177e-07,  1.4448658046252676e-09,
    -3.9171820510271855e-08, 1.1172352263623759e-08,  4.0608821469697202e-09,  -1.8902306008944537e-09};

[[gnu::always_inline]] inline VecF erfc_polynomial(VecF u) {
  VecF p = broadcast(kErfcF[11]);
  for (int i = 10; i >= 0; --i) p = fma(p, u, broadcast(kErfcF[i]));
  return p;
}
[[gnu::always_inline]] inline VecD erfc_polynomial(VecD u) {
  VecD p = broadcast(kErfcD[27]);
  for (int i = 26; i >= 0; --i) p = fma(p, u, broadcast(kErfcD[i]));
  return p;
}

template <class T>
[[gnu::always_inline]] inline Lanes<T> constant(double x) {
  return broadcast(static_cast<T>(x));
}

/// A value and its derivative.
template <class T>
struct Curve {
  Lanes<T> value, slope;
};

/// x Phi(x), Phi the distribution of a standard normal (arXiv:1606.08415, eq. 1).
template <class T>
struct ExactGelu {
  [[gnu::always_inline]] static Curve<T> at(Lanes<T> x) {
    const Lanes<T> z = abs(x) * constant<T>(0.70710678118654752440), two = constant<T>(2);
    const Lanes<T> t = two / (two + z), fit = erfc_polynomial(fma(two, t, constant<T>(-1)));
    const Lanes<T> tail = constant<T>(0.5) * t * exp(fma(-z, z, fit));  // Phi(-|x|)
    const Lanes<T> phi = select(x < zero<T>(), tail, constant<T>(1) - tail);
    const Lanes<T> density = constant<T>(0.39894228040143267794) * exp(-(z * z));
    return {x * phi, fma(x, density, phi)};
  }
};

/// The tanh form of the same paper: x (1 + tanh u) / 2 = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3).
template <class T>
struct TanhGelu {
  [[gnu::always_inline]] static Curve<T> at(Lanes<T> x) {
    const Lanes<T> cubic = constant<T>(0.044715) * x * x, twice = constant<T>(1.59576912160573071176);
    const Lanes<T> one = constant<T>(1), s = sigmoid(twice * fma(x, cubic, x));
    const Lanes<T> inner = twice * fma(constant<T>(3), cubic, one);  // d(2 u) / dx
    return {x * s, fma(x * s * (one - s), inner, s)};
  }
};

template <class T, class Gelu>
[[gnu::always_inline]] inline void forward(const T* x, T* y, std::int64_t n) {
  for_vectors<T>(n,
                 [=](std::int64_t i, auto part) { store(y + i, Gelu::at(load(x + i, part)).value, part); });
}

template <class T, class Gelu>
[[gnu::always_inline]] inline void backward(const T* x, const T* dy, T* dx, bool accumulate, std::int64_t n) {
  for_vectors<T>(n, [=](std::int64_t i, auto part) {
    const Lanes<T> result = load(dy + i, part) * Gelu::at(load(x + i, part)).slope;
    store(dx + i, accumulate ? load(dx + i, part) + result : result, part);
  });
}

}  // namespace

template <class T>
void gelu_forward(bool exact, const T* x, T* y, std::int64_t n) {
  if (exact)
    forward<T, ExactGelu<Real<T>>>(x, y, n);
  else
    forward<T, TanhGelu<Real<T>>>(x, y, n);
}

template <class T>
void gelu_backward(bool exact, const T* x, const T* dy, T* dx, bool accumulate, std::int64_t n) {
  if (exact)
    backward<T, ExactGelu<Real<T>>>(x, dy, dx, accumulate, n);
  else
    backward<T, TanhGelu<Real<T>>>(x, dy, dx, accumulate, n);
}

template void gelu_forward(bool, const float*, float*, std::int64_t);
template void gelu_forward(bool, const double*, double*, std::int64_t);
template void gelu_backward(bool, const float*, const float*, float*, bool, std::int64_t);
template void gelu_backward(bool, const double*, const double*, double*, bool, std::int64_t);

template void gelu_forward(bool, const bf16*, bf16*, std::int64_t);
template void gelu_backward(bool, const bf16*, const bf16*, bf16*, bool, std::int64_t);

}  // namespace dew::kernels::cpu::DEW_ISA
