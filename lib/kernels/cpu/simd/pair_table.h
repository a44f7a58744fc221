// The inner loops of bf16 products. Elements are taken in pairs along the inner dimension: a pair is one word
// of 32 bits, the earlier element in its lower half.
#pragma once

#include <cstdint>

#include "base/bfloat16.h"
#include "kernels/cpu/simd/matrix_table.h"

namespace dew::kernels::cpu {

using Pair = std::uint32_t;

struct PairPacking {
  /// y [ceil(columns / 2), rows] = the pairs of x [rows, columns] along its columns; an odd last element is
  /// paired with 0.
  void (*transpose)(std::int64_t rows, std::int64_t columns, Matrix<const bf16> x, Matrix<Pair> y);
  /// y [ceil(rows / 2), columns] = the pairs of x [rows, columns] along its rows.
  void (*interleave)(std::int64_t rows, std::int64_t columns, Matrix<const bf16> x, Matrix<Pair> y);
};

/// c [m, n] (+)= a b over k pairs: a [m, k], or [k, m] for the transposed ones; b [k, n]. Each sum runs in
/// f32 in the order of the pairs, whatever the sizes and the place of an element, and is rounded to c's type
/// once.
template <class C>
struct PairProducts {
  void (*multiply)(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<const Pair> a, Matrix<const Pair> b,
                   Matrix<C> c, bool accumulate);
  void (*multiply_transposed)(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<const Pair> a,
                              Matrix<const Pair> b, Matrix<C> c, bool accumulate);
};

struct PairTable {
  PairProducts<float> wide;
  PairProducts<bf16> narrow;
  /// y [rows, n] = x rounded as bf16 is, whole vectors of it.
  void (*narrow_rows)(std::int64_t rows, std::int64_t n, Matrix<const float> x, Matrix<bf16> y);
  /// y [ceil(rows / 2), n] = the pairs of the rounded x [rows, n] along its rows, whole vectors of them; an
  /// odd last row is paired with 0.
  void (*narrow_pairs)(std::int64_t rows, std::int64_t n, Matrix<const float> x, Matrix<Pair> y);
};

/// The packing of one instruction set.
const PairPacking& pair_packing(Isa isa);

/// True when this processor multiplies pairs (AVX-512 BF16).
bool has_pair_products();
/// The products; only where the processor has them.
const PairTable& pair_table();

}  // namespace dew::kernels::cpu
