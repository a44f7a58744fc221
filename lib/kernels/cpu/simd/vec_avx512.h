// Vec on AVX-512: one register. Included by vec.h alone.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace dew::kernels::cpu::DEW_ISA {

template <>
struct Vec<float> {
  using Mask = __mmask16;
  static constexpr std::int64_t kLanes = 16;
  __m512 v;
};

template <>
struct Vec<double> {
  using Mask = __mmask8;
  static constexpr std::int64_t kLanes = 8;
  __m512d v;
};

using VecF = Vec<float>;
using VecD = Vec<double>;

[[gnu::always_inline]] inline VecF broadcast(float x) {
  return {_mm512_set1_ps(x)};
}
[[gnu::always_inline]] inline VecD broadcast(double x) {
  return {_mm512_set1_pd(x)};
}

[[gnu::always_inline]] inline VecF load(const float* p) {
  return {_mm512_loadu_ps(p)};
}
[[gnu::always_inline]] inline VecD load(const double* p) {
  return {_mm512_loadu_pd(p)};
}
[[gnu::always_inline]] inline void store(float* p, VecF x) {
  _mm512_storeu_ps(p, x.v);
}
[[gnu::always_inline]] inline void store(double* p, VecD x) {
  _mm512_storeu_pd(p, x.v);
}

/// Lanes [0, n).
[[gnu::always_inline]] inline __mmask16 first_lanes_f(std::int64_t n) {
  return static_cast<__mmask16>((1u << static_cast<unsigned>(n)) - 1u);
}
[[gnu::always_inline]] inline __mmask8 first_lanes_d(std::int64_t n) {
  return static_cast<__mmask8>((1u << static_cast<unsigned>(n)) - 1u);
}

[[gnu::always_inline]] inline VecF load_partial(const float* p, std::int64_t n, float fill) {
  return {_mm512_mask_loadu_ps(_mm512_set1_ps(fill), first_lanes_f(n), p)};
}
[[gnu::always_inline]] inline VecD load_partial(const double* p, std::int64_t n, double fill) {
  return {_mm512_mask_loadu_pd(_mm512_set1_pd(fill), first_lanes_d(n), p)};
}
[[gnu::always_inline]] inline void store_partial(float* p, VecF x, std::int64_t n) {
  _mm512_mask_storeu_ps(p, first_lanes_f(n), x.v);
}
[[gnu::always_inline]] inline void store_partial(double* p, VecD x, std::int64_t n) {
  _mm512_mask_storeu_pd(p, first_lanes_d(n), x.v);
}

[[gnu::always_inline]] inline VecF operator+(VecF a, VecF b) {
  return {a.v + b.v};
}
[[gnu::always_inline]] inline VecD operator+(VecD a, VecD b) {
  return {a.v + b.v};
}
[[gnu::always_inline]] inline VecF operator-(VecF a, VecF b) {
  return {a.v - b.v};
}
[[gnu::always_inline]] inline VecD operator-(VecD a, VecD b) {
  return {a.v - b.v};
}
[[gnu::always_inline]] inline VecF operator*(VecF a, VecF b) {
  return {a.v * b.v};
}
[[gnu::always_inline]] inline VecD operator*(VecD a, VecD b) {
  return {a.v * b.v};
}
[[gnu::always_inline]] inline VecF operator/(VecF a, VecF b) {
  return {a.v / b.v};
}
[[gnu::always_inline]] inline VecD operator/(VecD a, VecD b) {
  return {a.v / b.v};
}
[[gnu::always_inline]] inline VecF operator-(VecF a) {
  return {-a.v};
}
[[gnu::always_inline]] inline VecD operator-(VecD a) {
  return {-a.v};
}

/// a b + c with one rounding.
[[gnu::always_inline]] inline VecF fma(VecF a, VecF b, VecF c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
[[gnu::always_inline]] inline VecD fma(VecD a, VecD b, VecD c) {
  return {_mm512_fmadd_pd(a.v, b.v, c.v)};
}

/// a > b ? a : b, so b where either is NaN; min is a < b ? a : b.
[[gnu::always_inline]] inline VecF max(VecF a, VecF b) {
  return {_mm512_max_ps(a.v, b.v)};
}
[[gnu::always_inline]] inline VecD max(VecD a, VecD b) {
  return {_mm512_max_pd(a.v, b.v)};
}
[[gnu::always_inline]] inline VecF min(VecF a, VecF b) {
  return {_mm512_min_ps(a.v, b.v)};
}
[[gnu::always_inline]] inline VecD min(VecD a, VecD b) {
  return {_mm512_min_pd(a.v, b.v)};
}

[[gnu::always_inline]] inline VecF sqrt(VecF a) {
  return {_mm512_sqrt_ps(a.v)};
}
[[gnu::always_inline]] inline VecD sqrt(VecD a) {
  return {_mm512_sqrt_pd(a.v)};
}
[[gnu::always_inline]] inline VecF abs(VecF a) {
  return {_mm512_abs_ps(a.v)};
}
[[gnu::always_inline]] inline VecD abs(VecD a) {
  return {_mm512_abs_pd(a.v)};
}
/// The nearest integer, to even in the middle.
[[gnu::always_inline]] inline VecF round_even(VecF a) {
  return {_mm512_roundscale_ps(a.v, 8)};
}
[[gnu::always_inline]] inline VecD round_even(VecD a) {
  return {_mm512_roundscale_pd(a.v, 8)};
}

[[gnu::always_inline]] inline __mmask16 operator<(VecF a, VecF b) {
  return _mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ);
}
[[gnu::always_inline]] inline __mmask8 operator<(VecD a, VecD b) {
  return _mm512_cmp_pd_mask(a.v, b.v, _CMP_LT_OQ);
}
[[gnu::always_inline]] inline __mmask16 operator<=(VecF a, VecF b) {
  return _mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ);
}
[[gnu::always_inline]] inline __mmask8 operator<=(VecD a, VecD b) {
  return _mm512_cmp_pd_mask(a.v, b.v, _CMP_LE_OQ);
}
[[gnu::always_inline]] inline __mmask16 operator==(VecF a, VecF b) {
  return _mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ);
}
[[gnu::always_inline]] inline __mmask8 operator==(VecD a, VecD b) {
  return _mm512_cmp_pd_mask(a.v, b.v, _CMP_EQ_OQ);
}

/// mask ? a : b in every lane.
[[gnu::always_inline]] inline VecF select(__mmask16 mask, VecF a, VecF b) {
  return {_mm512_mask_blend_ps(mask, b.v, a.v)};
}
[[gnu::always_inline]] inline VecD select(__mmask8 mask, VecD a, VecD b) {
  return {_mm512_mask_blend_pd(mask, b.v, a.v)};
}

/// x 2^n, rounded once, for integral n: |n| <= 250 in f32, |n| <= 2040 in f64, and |x| in [0.5, 2], or NaN.
[[gnu::always_inline]] inline VecF scale_by_power_of_two(VecF x, VecF n) {
  return {_mm512_scalef_ps(x.v, n.v)};
}
[[gnu::always_inline]] inline VecD scale_by_power_of_two(VecD x, VecD n) {
  return {_mm512_scalef_pd(x.v, n.v)};
}

/// floor(log2 x) and x / 2^floor(log2 x), in [1, 2), of a positive normal x.
[[gnu::always_inline]] inline VecD exponent_of(VecD x) {
  return {_mm512_getexp_pd(x.v)};
}
[[gnu::always_inline]] inline VecD mantissa_of(VecD x) {
  return {_mm512_getmant_pd(x.v, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src)};
}

/// Lanes 0-7 and 8-15 as doubles.
[[gnu::always_inline]] inline VecD widen_low(VecF x) {
  return {_mm512_cvtps_pd(_mm512_castps512_ps256(x.v))};
}
[[gnu::always_inline]] inline VecD widen_high(VecF x) {
  return {_mm512_cvtps_pd(_mm512_extractf32x8_ps(x.v, 1))};
}
/// Lanes 0-7 from `low`, 8-15 from `high`, rounded to nearest even.
[[gnu::always_inline]] inline VecF narrow(VecD low, VecD high) {
  return {_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low.v)), _mm512_cvtpd_ps(high.v), 1)};
}

/// The two vectors' lanes in turn, a[0] b[0] a[1] b[1] ...: the first half of them, and the second.
[[gnu::always_inline]] inline VecD interleave_low(VecD a, VecD b) {
  return {_mm512_permutex2var_pd(a.v, _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), b.v)};
}
[[gnu::always_inline]] inline VecD interleave_high(VecD a, VecD b) {
  return {_mm512_permutex2var_pd(a.v, _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15), b.v)};
}

/// Eight 64-bit words.
struct Words {
  __m512i v;
};

[[gnu::always_inline]] inline Words broadcast_word(std::uint64_t x) {
  return {_mm512_set1_epi64(static_cast<long long>(x))};
}
/// first, first + 1, ..., first + 7.
[[gnu::always_inline]] inline Words count_from(std::uint64_t first) {
  return {_mm512_add_epi64(broadcast_word(first).v, _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7))};
}
[[gnu::always_inline]] inline Words operator^(Words a, Words b) {
  return {a.v ^ b.v};
}
[[gnu::always_inline]] inline Words operator&(Words a, Words b) {
  return {a.v & b.v};
}
[[gnu::always_inline]] inline Words operator|(Words a, Words b) {
  return {a.v | b.v};
}
template <unsigned kBits>
[[gnu::always_inline]] inline Words shift_left(Words a) {
  return {_mm512_slli_epi64(a.v, kBits)};
}
template <unsigned kBits>
[[gnu::always_inline]] inline Words shift_right(Words a) {
  return {_mm512_srli_epi64(a.v, kBits)};
}
/// Product of the low 32 bits of each word.
[[gnu::always_inline]] inline Words multiply_low(Words a, Words b) {
  return {_mm512_mul_epu32(a.v, b.v)};
}
/// The words read as doubles.
[[gnu::always_inline]] inline VecD as_doubles(Words a) {
  return {_mm512_castsi512_pd(a.v)};
}

/// bf16 as floats, and back, rounded as base/bfloat16.h says.
[[gnu::always_inline]] inline VecF from_bf16(__m256i x) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16))};
}
#ifdef __AVX512BF16__
[[gnu::always_inline]] inline __m256i to_bf16(VecF x) {
  return (__m256i)_mm512_cvtneps_pbh(x.v);
}
#else
[[gnu::always_inline]] inline __m256i to_bf16(VecF x) {
  const __m512i word = _mm512_castps_si512(x.v), high = _mm512_srli_epi32(word, 16);
  const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
  const __m512i bias = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF));
  const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(word, bias), 16);
  const __m512i quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
  const __mmask16 is_nan = _mm512_cmp_ps_mask(x.v, x.v, _CMP_UNORD_Q);
  const __mmask16 is_normal = _mm512_test_epi32_mask(word, _mm512_set1_epi32(0x7F800000));
  const __m512i sign = _mm512_and_si512(high, _mm512_set1_epi32(0x8000));
  const __m512i nearest = _mm512_mask_blend_epi32(is_normal, sign, rounded);
  return _mm512_cvtepi32_epi16(_mm512_mask_blend_epi32(is_nan, nearest, quiet));
}
#endif
[[gnu::always_inline]] inline VecF widen_bf16(const bf16* p) {
  return from_bf16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
[[gnu::always_inline]] inline VecF widen_bf16_partial(const bf16* p, std::int64_t n, float fill) {
  const VecF x = from_bf16(_mm256_maskz_loadu_epi16(first_lanes_f(n), p));
  return {_mm512_mask_blend_ps(first_lanes_f(n), _mm512_set1_ps(fill), x.v)};
}
[[gnu::always_inline]] inline void narrow_bf16(bf16* p, VecF x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), to_bf16(x));
}
[[gnu::always_inline]] inline void narrow_bf16_partial(bf16* p, VecF x, std::int64_t n) {
  _mm256_mask_storeu_epi16(p, first_lanes_f(n), to_bf16(x));
}

/// The two halves of the lanes, for reductions.
[[gnu::always_inline]] inline __m256 low_half(VecF x) {
  return _mm512_castps512_ps256(x.v);
}
[[gnu::always_inline]] inline __m256 high_half(VecF x) {
  return _mm512_extractf32x8_ps(x.v, 1);
}
[[gnu::always_inline]] inline __m256d low_half(VecD x) {
  return _mm512_castpd512_pd256(x.v);
}
[[gnu::always_inline]] inline __m256d high_half(VecD x) {
  return _mm512_extractf64x4_pd(x.v, 1);
}

}  // namespace dew::kernels::cpu::DEW_ISA
