// Functions on vectors: reductions over lanes in a fixed tree, exp, log, sine and cosine, sigmoid.
#pragma once

#include "kernels/cpu/simd/vec.h"

namespace dew::kernels::cpu::DEW_ISA {

/// Sum over lanes: lane i with i + half, halving four (f32) or three (f64) times.
[[gnu::always_inline]] inline float reduce_add(VecF x) {
  const __m256 eight = low_half(x) + high_half(x);
  const __m128 four = _mm256_castps256_ps128(eight) + _mm256_extractf128_ps(eight, 1);
  const __m128 two = four + _mm_movehl_ps(four, four);
  return two[0] + two[1];
}
[[gnu::always_inline]] inline double reduce_add(VecD x) {
  const __m256d four = low_half(x) + high_half(x);
  const __m128d two = _mm256_castpd256_pd128(four) + _mm256_extractf128_pd(four, 1);
  return two[0] + two[1];
}

/// Largest lane; the lanes must not be NaN (accumulate with max(x, best), which passes over NaN).
[[gnu::always_inline]] inline float reduce_max(VecF x) {
  const __m256 eight = _mm256_max_ps(low_half(x), high_half(x));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return two[0] > two[1] ? two[0] : two[1];
}
[[gnu::always_inline]] inline double reduce_max(VecD x) {
  const __m256d four = _mm256_max_pd(low_half(x), high_half(x));
  const __m128d two = _mm_max_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  return two[0] > two[1] ? two[0] : two[1];
}

/// e^x with an error of at most 1.1 ulp (over all f32; 0.99 met in f64), denormal results included. NaN gives
/// NaN; above the range infinity, below it 0. x = n ln 2 + r, |r| <= ln 2 / 2; the Taylor polynomial of e^r
/// leaves out less than 0.35^8 / 8! = 6e-9 in f32 (degree 7) and 0.35^14 / 14! = 5e-18 in f64 (degree 13).
[[gnu::always_inline]] inline VecF exp(VecF x) {
  // Past these bounds the result is infinity or rounds to 0. The order of operands lets NaN pass.
  x = max(broadcast(-104.0f), min(broadcast(89.0f), x));
  const VecF n = round_even(x * broadcast(0x1.715476p+0f));
  // The first part of ln 2 has 9 bits: its product with n is exact.
  const VecF r = fma(n, broadcast(2.12194440e-4f), fma(n, broadcast(-0.693359375f), x));
  VecF p = broadcast(1.0f / 5040.0f);
  p = fma(p, r, broadcast(1.0f / 720.0f));
  p = fma(p, r, broadcast(1.0f / 120.0f));
  p = fma(p, r, broadcast(1.0f / 24.0f));
  p = fma(p, r, broadcast(1.0f / 6.0f));
  p = fma(p, r, broadcast(0.5f));
  p = fma(p, r * r, r);
  return scale_by_power_of_two(p + broadcast(1.0f), n);
}
[[gnu::always_inline]] inline VecD exp(VecD x) {
  x = max(broadcast(-746.0), min(broadcast(710.0), x));
  const VecD n = round_even(x * broadcast(0x1.71547652b82fep+0));
  const VecD r =
      fma(n, broadcast(-1.90821492927058770002e-10), fma(n, broadcast(-6.93147180369123816490e-01), x));
  VecD p = broadcast(1.0 / 6227020800.0);
  p = fma(p, r, broadcast(1.0 / 479001600.0));
  p = fma(p, r, broadcast(1.0 / 39916800.0));
  p = fma(p, r, broadcast(1.0 / 3628800.0));
  p = fma(p, r, broadcast(1.0 / 362880.0));
  p = fma(p, r, broadcast(1.0 / 40320.0));
  p = fma(p, r, broadcast(1.0 / 5040.0));
  p = fma(p, r, broadcast(1.0 / 720.0));
  p = fma(p, r, broadcast(1.0 / 120.0));
  p = fma(p, r, broadcast(1.0 / 24.0));
  p = fma(p, r, broadcast(1.0 / 6.0));
  p = fma(p, r, broadcast(0.5));
  p = fma(p, r * r, r);
  return scale_by_power_of_two(p + broadcast(1.0), n);
}

/// Natural logarithm of a positive normal finite x, within about 1 ulp. With x = 2^e m, m in [sqrt(1/2),
/// sqrt(2)], and s = (m - 1) / (m + 1): log m = 2 (s + s^3/3 + s^5/5 + ...), |s| <= 0.172; what is left out
/// is below 1e-17 of it.
[[gnu::always_inline]] inline VecD log(VecD x) {
  VecD e = exponent_of(x), m = mantissa_of(x);
  const VecD one = broadcast(1.0);
  const VecD::Mask large = broadcast(0x1.6a09e667f3bcdp+0) < m;
  e = select(large, e + one, e);
  m = select(large, m * broadcast(0.5), m);
  const VecD s = (m - one) / (m + one), z = s * s;
  VecD p = broadcast(1.0 / 23.0);
  p = fma(p, z, broadcast(1.0 / 21.0));
  p = fma(p, z, broadcast(1.0 / 19.0));
  p = fma(p, z, broadcast(1.0 / 17.0));
  p = fma(p, z, broadcast(1.0 / 15.0));
  p = fma(p, z, broadcast(1.0 / 13.0));
  p = fma(p, z, broadcast(1.0 / 11.0));
  p = fma(p, z, broadcast(1.0 / 9.0));
  p = fma(p, z, broadcast(1.0 / 7.0));
  p = fma(p, z, broadcast(1.0 / 5.0));
  p = fma(p, z, broadcast(1.0 / 3.0));
  const VecD twice = s + s;
  const VecD small = fma(twice * z, p, e * broadcast(1.90821492927058770002e-10));
  return fma(e, broadcast(6.93147180369123816490e-01), twice + small);
}

struct SinCos {
  VecD sine, cosine;
};

/// Sine and cosine of u turns, u in [0, 1], within about 1 ulp of 1. The quarter turn k next to u is taken
/// off exactly; the Taylor polynomials on |angle| <= pi / 4 leave out less than 1e-19 and 3e-18.
[[gnu::always_inline]] inline SinCos sin_cos_turns(VecD u) {
  const VecD k = round_even(u * broadcast(4.0));
  const VecD t = (u - k * broadcast(0.25)) * broadcast(0x1.921fb54442d18p+2), z = t * t;
  VecD s = broadcast(1.0 / 355687428096000.0);
  s = fma(s, z, broadcast(-1.0 / 1307674368000.0));
  s = fma(s, z, broadcast(1.0 / 6227020800.0));
  s = fma(s, z, broadcast(-1.0 / 39916800.0));
  s = fma(s, z, broadcast(1.0 / 362880.0));
  s = fma(s, z, broadcast(-1.0 / 5040.0));
  s = fma(s, z, broadcast(1.0 / 120.0));
  s = fma(s, z, broadcast(-1.0 / 6.0));
  s = fma(s, z * t, t);
  VecD c = broadcast(1.0 / 20922789888000.0);
  c = fma(c, z, broadcast(-1.0 / 87178291200.0));
  c = fma(c, z, broadcast(1.0 / 479001600.0));
  c = fma(c, z, broadcast(-1.0 / 3628800.0));
  c = fma(c, z, broadcast(1.0 / 40320.0));
  c = fma(c, z, broadcast(-1.0 / 720.0));
  c = fma(c, z, broadcast(1.0 / 24.0));
  c = fma(c, z, broadcast(-0.5));
  c = fma(c, z, broadcast(1.0));
  // k in 0..4: odd k swaps the two; the cosine is negative at k = 1, 2, the sine at k = 2, 3.
  const VecD one = broadcast(1.0);
  const VecD::Mask swapped = abs(k - broadcast(2.0)) == one;
  const VecD sine = select(swapped, c, s), cosine = select(swapped, s, c);
  return {select(abs(k - broadcast(2.5)) < one, -sine, sine),
          select(abs(k - broadcast(1.5)) < one, -cosine, cosine)};
}

/// 1 / (1 + e^-x).
template <class T>
[[gnu::always_inline]] inline Vec<T> sigmoid(Vec<T> x) {
  const Vec<T> one = broadcast(T{1});
  return one / (one + exp(-x));
}

}  // namespace dew::kernels::cpu::DEW_ISA
