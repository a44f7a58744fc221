// What forward and backward of attention by pairs share.
#pragma once

#include "kernels/cpu/attention_tiles.h"
#include "kernels/cpu/simd/pair_table.h"

namespace dew::kernels::cpu {

/// The inner loops on this processor.
struct PairOps {
  const PairTable& products = pair_table();
  const PairPacking& packing = pair_packing(best_isa());
  const AttentionOps<float>& softmax = attention_ops<float>();
  std::int64_t lanes = matrix_ops<float>().lanes;
};

/// Pairs take as much room as floats.
inline Matrix<Pair> take_pairs(Scratch<float>& scratch, std::int64_t rows, std::int64_t columns) {
  static_assert(sizeof(Pair) == sizeof(float));
  return {reinterpret_cast<Pair*>(scratch.take(rows * columns)), columns};
}

/// Rows of even length as pairs along them, where they lie.
inline Matrix<const Pair> as_pairs(Matrix<const bf16> x) {
  return {reinterpret_cast<const Pair*>(x.first), x.stride / 2};
}

/// y [K / 2, block] = the block's rows [rows, K] in pairs along K, transposed; lanes past the rows hold
/// zeros.
inline void pack_lanes(const PairOps& ops, Matrix<const bf16> rows, const QueryBlock& block,
                       std::int64_t width, Matrix<Pair> y) {
  if (block.rows() < block.width)
    for (std::int64_t i = 0; i < width / 2; ++i) std::fill_n(y.at(i, 0).first, block.width, Pair{0});
  ops.packing.transpose(block.rows(), width, rows, y);
}

/// The range in whole pairs of keys: what it takes in besides, a mask hides.
inline KeyRange even(KeyRange keys, std::int64_t count) {
  if (keys.begin >= keys.end) return keys;
  return {keys.begin / 2 * 2, std::min((keys.end + 1) / 2 * 2, count)};
}

}  // namespace dew::kernels::cpu
