// Vec on AVX2 with FMA: two registers. Included by vec.h alone; what the functions mean stands in
// vec_avx512.h.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace dew::kernels::cpu::DEW_ISA {

/// All bits of a lane are set where it is true.
struct MaskF {
  __m256 low, high;
};
struct MaskD {
  __m256d low, high;
};

template <>
struct Vec<float> {
  using Mask = MaskF;
  static constexpr std::int64_t kLanes = 16;
  __m256 low, high;
};

template <>
struct Vec<double> {
  using Mask = MaskD;
  static constexpr std::int64_t kLanes = 8;
  __m256d low, high;
};

using VecF = Vec<float>;
using VecD = Vec<double>;

[[gnu::always_inline]] inline VecF broadcast(float x) {
  return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
[[gnu::always_inline]] inline VecD broadcast(double x) {
  return {_mm256_set1_pd(x), _mm256_set1_pd(x)};
}

[[gnu::always_inline]] inline VecF load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
[[gnu::always_inline]] inline VecD load(const double* p) {
  return {_mm256_loadu_pd(p), _mm256_loadu_pd(p + 4)};
}
[[gnu::always_inline]] inline void store(float* p, VecF x) {
  _mm256_storeu_ps(p, x.low);
  _mm256_storeu_ps(p + 8, x.high);
}
[[gnu::always_inline]] inline void store(double* p, VecD x) {
  _mm256_storeu_pd(p, x.low);
  _mm256_storeu_pd(p + 4, x.high);
}

/// Lanes [0, n).
[[gnu::always_inline]] inline MaskF first_lanes_f(std::int64_t n) {
  const __m256i count = _mm256_set1_epi32(static_cast<int>(n));
  return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(count, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))),
          _mm256_castsi256_ps(_mm256_cmpgt_epi32(count, _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15)))};
}
[[gnu::always_inline]] inline MaskD first_lanes_d(std::int64_t n) {
  const __m256i count = _mm256_set1_epi64x(n);
  return {_mm256_castsi256_pd(_mm256_cmpgt_epi64(count, _mm256_setr_epi64x(0, 1, 2, 3))),
          _mm256_castsi256_pd(_mm256_cmpgt_epi64(count, _mm256_setr_epi64x(4, 5, 6, 7)))};
}

[[gnu::always_inline]] inline VecF select(MaskF mask, VecF a, VecF b) {
  return {_mm256_blendv_ps(b.low, a.low, mask.low), _mm256_blendv_ps(b.high, a.high, mask.high)};
}
[[gnu::always_inline]] inline VecD select(MaskD mask, VecD a, VecD b) {
  return {_mm256_blendv_pd(b.low, a.low, mask.low), _mm256_blendv_pd(b.high, a.high, mask.high)};
}

[[gnu::always_inline]] inline VecF load_partial(const float* p, std::int64_t n, float fill) {
  const MaskF mask = first_lanes_f(n);
  const VecF x{_mm256_maskload_ps(p, _mm256_castps_si256(mask.low)),
               _mm256_maskload_ps(p + 8, _mm256_castps_si256(mask.high))};
  return select(mask, x, broadcast(fill));
}
[[gnu::always_inline]] inline VecD load_partial(const double* p, std::int64_t n, double fill) {
  const MaskD mask = first_lanes_d(n);
  const VecD x{_mm256_maskload_pd(p, _mm256_castpd_si256(mask.low)),
               _mm256_maskload_pd(p + 4, _mm256_castpd_si256(mask.high))};
  return select(mask, x, broadcast(fill));
}
[[gnu::always_inline]] inline void store_partial(float* p, VecF x, std::int64_t n) {
  const MaskF mask = first_lanes_f(n);
  _mm256_maskstore_ps(p, _mm256_castps_si256(mask.low), x.low);
  _mm256_maskstore_ps(p + 8, _mm256_castps_si256(mask.high), x.high);
}
[[gnu::always_inline]] inline void store_partial(double* p, VecD x, std::int64_t n) {
  const MaskD mask = first_lanes_d(n);
  _mm256_maskstore_pd(p, _mm256_castpd_si256(mask.low), x.low);
  _mm256_maskstore_pd(p + 4, _mm256_castpd_si256(mask.high), x.high);
}

[[gnu::always_inline]] inline VecF operator+(VecF a, VecF b) {
  return {a.low + b.low, a.high + b.high};
}
[[gnu::always_inline]] inline VecD operator+(VecD a, VecD b) {
  return {a.low + b.low, a.high + b.high};
}
[[gnu::always_inline]] inline VecF operator-(VecF a, VecF b) {
  return {a.low - b.low, a.high - b.high};
}
[[gnu::always_inline]] inline VecD operator-(VecD a, VecD b) {
  return {a.low - b.low, a.high - b.high};
}
[[gnu::always_inline]] inline VecF operator*(VecF a, VecF b) {
  return {a.low * b.low, a.high * b.high};
}
[[gnu::always_inline]] inline VecD operator*(VecD a, VecD b) {
  return {a.low * b.low, a.high * b.high};
}
[[gnu::always_inline]] inline VecF operator/(VecF a, VecF b) {
  return {a.low / b.low, a.high / b.high};
}
[[gnu::always_inline]] inline VecD operator/(VecD a, VecD b) {
  return {a.low / b.low, a.high / b.high};
}
[[gnu::always_inline]] inline VecF operator-(VecF a) {
  return {-a.low, -a.high};
}
[[gnu::always_inline]] inline VecD operator-(VecD a) {
  return {-a.low, -a.high};
}

[[gnu::always_inline]] inline VecF fma(VecF a, VecF b, VecF c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
[[gnu::always_inline]] inline VecD fma(VecD a, VecD b, VecD c) {
  return {_mm256_fmadd_pd(a.low, b.low, c.low), _mm256_fmadd_pd(a.high, b.high, c.high)};
}

[[gnu::always_inline]] inline VecF max(VecF a, VecF b) {
  return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}
[[gnu::always_inline]] inline VecD max(VecD a, VecD b) {
  return {_mm256_max_pd(a.low, b.low), _mm256_max_pd(a.high, b.high)};
}
[[gnu::always_inline]] inline VecF min(VecF a, VecF b) {
  return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}
[[gnu::always_inline]] inline VecD min(VecD a, VecD b) {
  return {_mm256_min_pd(a.low, b.low), _mm256_min_pd(a.high, b.high)};
}

[[gnu::always_inline]] inline VecF sqrt(VecF a) {
  return {_mm256_sqrt_ps(a.low), _mm256_sqrt_ps(a.high)};
}
[[gnu::always_inline]] inline VecD sqrt(VecD a) {
  return {_mm256_sqrt_pd(a.low), _mm256_sqrt_pd(a.high)};
}
[[gnu::always_inline]] inline VecF abs(VecF a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, a.low), _mm256_andnot_ps(sign, a.high)};
}
[[gnu::always_inline]] inline VecD abs(VecD a) {
  const __m256d sign = _mm256_set1_pd(-0.0);
  return {_mm256_andnot_pd(sign, a.low), _mm256_andnot_pd(sign, a.high)};
}
[[gnu::always_inline]] inline VecF round_even(VecF a) {
  return {_mm256_round_ps(a.low, 8), _mm256_round_ps(a.high, 8)};
}
[[gnu::always_inline]] inline VecD round_even(VecD a) {
  return {_mm256_round_pd(a.low, 8), _mm256_round_pd(a.high, 8)};
}

[[gnu::always_inline]] inline MaskF operator<(VecF a, VecF b) {
  return {_mm256_cmp_ps(a.low, b.low, _CMP_LT_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_LT_OQ)};
}
[[gnu::always_inline]] inline MaskD operator<(VecD a, VecD b) {
  return {_mm256_cmp_pd(a.low, b.low, _CMP_LT_OQ), _mm256_cmp_pd(a.high, b.high, _CMP_LT_OQ)};
}
[[gnu::always_inline]] inline MaskF operator<=(VecF a, VecF b) {
  return {_mm256_cmp_ps(a.low, b.low, _CMP_LE_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_LE_OQ)};
}
[[gnu::always_inline]] inline MaskD operator<=(VecD a, VecD b) {
  return {_mm256_cmp_pd(a.low, b.low, _CMP_LE_OQ), _mm256_cmp_pd(a.high, b.high, _CMP_LE_OQ)};
}
[[gnu::always_inline]] inline MaskF operator==(VecF a, VecF b) {
  return {_mm256_cmp_ps(a.low, b.low, _CMP_EQ_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_EQ_OQ)};
}
[[gnu::always_inline]] inline MaskD operator==(VecD a, VecD b) {
  return {_mm256_cmp_pd(a.low, b.low, _CMP_EQ_OQ), _mm256_cmp_pd(a.high, b.high, _CMP_EQ_OQ)};
}

/// 2^n for integral n of a normal result: n + bias stands in the low bits of the sum and is shifted into the
/// exponent.
[[gnu::always_inline]] inline __m256 power_of_two(__m256 n) {
  const __m256i bits = _mm256_castps_si256(n + _mm256_set1_ps(0x1.8p23f + 127.0f));
  return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 23));
}
[[gnu::always_inline]] inline __m256d power_of_two(__m256d n) {
  const __m256i bits = _mm256_castpd_si256(n + _mm256_set1_pd(0x1.8p52 + 1023.0));
  return _mm256_castsi256_pd(_mm256_slli_epi64(bits, 52));
}
// In two factors, since 2^n itself may be out of range; the first product is exact, so there is one rounding.
[[gnu::always_inline]] inline VecF scale_by_power_of_two(VecF x, VecF n) {
  const VecF a = round_even(n * broadcast(0.5f)), b = n - a;
  return {x.low * power_of_two(a.low) * power_of_two(b.low),
          x.high * power_of_two(a.high) * power_of_two(b.high)};
}
[[gnu::always_inline]] inline VecD scale_by_power_of_two(VecD x, VecD n) {
  const VecD a = round_even(n * broadcast(0.5)), b = n - a;
  return {x.low * power_of_two(a.low) * power_of_two(b.low),
          x.high * power_of_two(a.high) * power_of_two(b.high)};
}

[[gnu::always_inline]] inline __m256d exponent_of(__m256d x) {
  const __m256i field = _mm256_srli_epi64(_mm256_castpd_si256(x), 52);
  const __m256d shifted = _mm256_or_pd(_mm256_castsi256_pd(field), _mm256_set1_pd(0x1p52));
  return shifted - _mm256_set1_pd(0x1p52 + 1023.0);
}
[[gnu::always_inline]] inline __m256d mantissa_of(__m256d x) {
  const __m256d fraction = _mm256_and_pd(x, _mm256_castsi256_pd(_mm256_set1_epi64x(0x000FFFFFFFFFFFFF)));
  return _mm256_or_pd(fraction, _mm256_set1_pd(1.0));
}
[[gnu::always_inline]] inline VecD exponent_of(VecD x) {
  return {exponent_of(x.low), exponent_of(x.high)};
}
[[gnu::always_inline]] inline VecD mantissa_of(VecD x) {
  return {mantissa_of(x.low), mantissa_of(x.high)};
}

[[gnu::always_inline]] inline VecD widen(__m256 x) {
  return {_mm256_cvtps_pd(_mm256_castps256_ps128(x)), _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))};
}
[[gnu::always_inline]] inline __m256 narrow(VecD x) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(x.low)), _mm256_cvtpd_ps(x.high), 1);
}
[[gnu::always_inline]] inline VecD widen_low(VecF x) {
  return widen(x.low);
}
[[gnu::always_inline]] inline VecD widen_high(VecF x) {
  return widen(x.high);
}
[[gnu::always_inline]] inline VecF narrow(VecD low, VecD high) {
  return {narrow(low), narrow(high)};
}

[[gnu::always_inline]] inline VecD interleave(__m256d a, __m256d b) {
  const __m256d even = _mm256_unpacklo_pd(a, b), odd = _mm256_unpackhi_pd(a, b);
  return {_mm256_permute2f128_pd(even, odd, 0x20), _mm256_permute2f128_pd(even, odd, 0x31)};
}
[[gnu::always_inline]] inline VecD interleave_low(VecD a, VecD b) {
  return interleave(a.low, b.low);
}
[[gnu::always_inline]] inline VecD interleave_high(VecD a, VecD b) {
  return interleave(a.high, b.high);
}

struct Words {
  __m256i low, high;
};

[[gnu::always_inline]] inline Words broadcast_word(std::uint64_t x) {
  const __m256i v = _mm256_set1_epi64x(static_cast<long long>(x));
  return {v, v};
}
[[gnu::always_inline]] inline Words count_from(std::uint64_t first) {
  const Words base = broadcast_word(first);
  return {_mm256_add_epi64(base.low, _mm256_setr_epi64x(0, 1, 2, 3)),
          _mm256_add_epi64(base.high, _mm256_setr_epi64x(4, 5, 6, 7))};
}
[[gnu::always_inline]] inline Words operator^(Words a, Words b) {
  return {a.low ^ b.low, a.high ^ b.high};
}
[[gnu::always_inline]] inline Words operator&(Words a, Words b) {
  return {a.low & b.low, a.high & b.high};
}
[[gnu::always_inline]] inline Words operator|(Words a, Words b) {
  return {a.low | b.low, a.high | b.high};
}
template <unsigned kBits>
[[gnu::always_inline]] inline Words shift_left(Words a) {
  return {_mm256_slli_epi64(a.low, kBits), _mm256_slli_epi64(a.high, kBits)};
}
template <unsigned kBits>
[[gnu::always_inline]] inline Words shift_right(Words a) {
  return {_mm256_srli_epi64(a.low, kBits), _mm256_srli_epi64(a.high, kBits)};
}
[[gnu::always_inline]] inline Words multiply_low(Words a, Words b) {
  return {_mm256_mul_epu32(a.low, b.low), _mm256_mul_epu32(a.high, b.high)};
}
[[gnu::always_inline]] inline VecD as_doubles(Words a) {
  return {_mm256_castsi256_pd(a.low), _mm256_castsi256_pd(a.high)};
}

[[gnu::always_inline]] inline __m256 from_bf16(__m128i x) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
}
[[gnu::always_inline]] inline __m128i to_bf16(__m256 x) {
  const __m256i word = _mm256_castps_si256(x), high = _mm256_srli_epi32(word, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF));
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(word, bias), 16);
  const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  const __m256 is_nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
  const __m256i exponent = _mm256_and_si256(word, _mm256_set1_epi32(0x7F800000));
  const __m256i is_denormal = _mm256_cmpeq_epi32(exponent, _mm256_setzero_si256());
  const __m256i sign = _mm256_and_si256(high, _mm256_set1_epi32(0x8000));
  const __m256i nearest = _mm256_blendv_epi8(rounded, sign, is_denormal);
  const __m256i words = _mm256_blendv_epi8(nearest, quiet, _mm256_castps_si256(is_nan));
  return _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}
[[gnu::always_inline]] inline VecF widen_bf16(const bf16* p) {
  const auto* words = reinterpret_cast<const __m128i*>(p);
  return {from_bf16(_mm_loadu_si128(words)), from_bf16(_mm_loadu_si128(words + 1))};
}
[[gnu::always_inline]] inline VecF widen_bf16_partial(const bf16* p, std::int64_t n, float fill) {
  std::uint16_t whole[16] = {};
  __builtin_memcpy(whole, p, static_cast<unsigned long>(n) * sizeof(bf16));
  return select(first_lanes_f(n), widen_bf16(reinterpret_cast<const bf16*>(whole)), broadcast(fill));
}
[[gnu::always_inline]] inline void narrow_bf16(bf16* p, VecF x) {
  auto* words = reinterpret_cast<__m128i*>(p);
  _mm_storeu_si128(words, to_bf16(x.low));
  _mm_storeu_si128(words + 1, to_bf16(x.high));
}
[[gnu::always_inline]] inline void narrow_bf16_partial(bf16* p, VecF x, std::int64_t n) {
  std::uint16_t whole[16];
  narrow_bf16(reinterpret_cast<bf16*>(whole), x);
  __builtin_memcpy(p, whole, static_cast<unsigned long>(n) * sizeof(bf16));
}

[[gnu::always_inline]] inline __m256 low_half(VecF x) {
  return x.low;
}
[[gnu::always_inline]] inline __m256 high_half(VecF x) {
  return x.high;
}
[[gnu::always_inline]] inline __m256d low_half(VecD x) {
  return x.low;
}
[[gnu::always_inline]] inline __m256d high_half(VecD x) {
  return x.high;
}

}  // namespace dew::kernels::cpu::DEW_ISA
