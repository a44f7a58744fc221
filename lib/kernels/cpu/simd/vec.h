// Vectors of 64 bytes for the leaf loops: Vec<float> has 16 lanes and Vec<double> has 8 on every instruction
// set (one register with AVX-512, two with AVX2), so that a loop gives the same bits on both.
//
// Rules of this folder, from which the bits depend on neither an address, a place in a loop, nor the thread
// count:
// * Every source is compiled for x86-64-v3 with -DDEW_ISA=avx2 and for x86-64-v4 with -DDEW_ISA=avx512, those
//   behind simd_table() once more with -mavx512bf16 and -DDEW_ISA=avx512_bf16; it lives in
//   dew::kernels::cpu::DEW_ISA. It uses raw pointers and builtins only: a standard template emitted here for
//   a newer machine could be the copy that the linker keeps for the whole program.
// * Loads and stores are unaligned. A tail runs masked through the vector code (`for_vectors`), never through
// a scalar loop.
// * -ffp-contract=off: a product is fused with a sum only where `fma` says so. No -ffast-math: NaN and
// infinity count.
// * Sums over lanes take the fixed tree of `reduce_add`.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "base/bfloat16.h"

namespace dew::kernels::cpu::DEW_ISA {

/// 64 bytes of T. Operators and functions: + - * / between vectors, - of one, fma, max, min, abs, sqrt,
/// round_even, comparisons giving Vec<T>::Mask, select, load, store, reduce_add, reduce_max, exp
/// (vec_math.h).
template <class T>
struct Vec;

/// Which lanes a load or store touches: all of them, or the first `count`.
struct AllLanes {};
struct FirstLanes {
  std::int64_t count;  ///< 0 to kLanes
};

}  // namespace dew::kernels::cpu::DEW_ISA

#ifdef __AVX512F__
#include "kernels/cpu/simd/vec_avx512.h"
#else
#include "kernels/cpu/simd/vec_avx2.h"
#endif

namespace dew::kernels::cpu::DEW_ISA {

template <class T>
[[gnu::always_inline]] inline Vec<T> zero() {
  return broadcast(T{0});
}

template <class T>
[[gnu::always_inline]] inline Vec<T> load(const T* p, AllLanes) {
  return load(p);
}
/// Lanes from `count` on become `fill`; their memory is not touched.
template <class T>
[[gnu::always_inline]] inline Vec<T> load(const T* p, FirstLanes part, T fill = T{0}) {
  return load_partial(p, part.count, fill);
}
template <class T>
[[gnu::always_inline]] inline Vec<T> load(const T* p, AllLanes, T) {
  return load(p);
}
template <class T>
[[gnu::always_inline]] inline void store(T* p, Vec<T> v, AllLanes) {
  store(p, v);
}
template <class T>
[[gnu::always_inline]] inline void store(T* p, Vec<T> v, FirstLanes part) {
  store_partial(p, v, part.count);
}

/// The vector that numbers stored as T are computed in.
template <class T>
using Lanes = Vec<Real<T>>;

[[gnu::always_inline]] inline VecF load(const bf16* p, AllLanes) {
  return widen_bf16(p);
}
[[gnu::always_inline]] inline VecF load(const bf16* p, FirstLanes part, float fill = 0.0f) {
  return widen_bf16_partial(p, part.count, fill);
}
[[gnu::always_inline]] inline VecF load(const bf16* p, AllLanes, float) {
  return widen_bf16(p);
}
[[gnu::always_inline]] inline void store(bf16* p, VecF v, AllLanes) {
  narrow_bf16(p, v);
}
[[gnu::always_inline]] inline void store(bf16* p, VecF v, FirstLanes part) {
  narrow_bf16_partial(p, v, part.count);
}

/// Eight floats, widened; with FirstLanes lanes from `count` on become 0.
[[gnu::always_inline]] inline VecD load_widened(const float* p, AllLanes) {
  return widen_low(load_partial(p, Vec<double>::kLanes, 0.0f));
}
[[gnu::always_inline]] inline VecD load_widened(const float* p, FirstLanes part) {
  return widen_low(load_partial(p, part.count, 0.0f));
}

/// Sixteen doubles, beside a Vec<float>.
struct LanePair {
  VecD low, high;
};
[[gnu::always_inline]] inline LanePair load_pair(const double* p, AllLanes) {
  return {load(p), load(p + VecD::kLanes)};
}
[[gnu::always_inline]] inline LanePair load_pair(const double* p, FirstLanes part) {
  if (part.count <= VecD::kLanes) return {load_partial(p, part.count, 0.0), broadcast(0.0)};
  return {load(p), load_partial(p + VecD::kLanes, part.count - VecD::kLanes, 0.0)};
}
[[gnu::always_inline]] inline void store_pair(double* p, LanePair x, AllLanes) {
  store(p, x.low);
  store(p + VecD::kLanes, x.high);
}
[[gnu::always_inline]] inline void store_pair(double* p, LanePair x, FirstLanes part) {
  store_partial(p, x.low, part.count < VecD::kLanes ? part.count : VecD::kLanes);
  if (part.count > VecD::kLanes) store_partial(p + VecD::kLanes, x.high, part.count - VecD::kLanes);
}

/// Brings the cache line of base[offset] into the second cache: wanted soon, not now. Any address will do.
template <class T>
[[gnu::always_inline]] inline void prefetch(const T* base, std::int64_t offset) {
  const auto line = reinterpret_cast<std::uintptr_t>(base) + static_cast<std::uintptr_t>(offset) * sizeof(T);
  __builtin_prefetch(reinterpret_cast<const void*>(line), 0, 2);
}

/// Calls f(i, AllLanes) for every whole vector of [0, n), then f(i, FirstLanes) once for what is left.
template <class T, class F>
[[gnu::always_inline]] inline void for_vectors(std::int64_t n, F f) {
  std::int64_t i = 0;
  for (; i + Lanes<T>::kLanes <= n; i += Lanes<T>::kLanes) f(i, AllLanes{});
  if (i < n) f(i, FirstLanes{n - i});
}

}  // namespace dew::kernels::cpu::DEW_ISA
