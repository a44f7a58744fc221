// Sums over tokens for the gradient of a vector, in f64 and in an order that no thread count changes: chunks
// of tokens, each into a row of its own, and these rows in order.
#pragma once

#include <algorithm>

#include "kernels/cpu/parallel.h"
#include "kernels/gemm.h"

namespace dew::kernels::cpu {

/// Tokens whose sum is one row of scratch.
inline constexpr std::int64_t kSumChunkRows = 64;
/// Rows whose gradients are taken together, while they are in the first cache; it divides kSumChunkRows.
inline constexpr std::int64_t kSumBlockRows = 4;

/// Of the f64 scratch of a sum over `rows` of width `d`.
inline Shape column_sums_shape(std::int64_t rows, std::int64_t d) {
  return {(rows + kSumChunkRows - 1) / kSumChunkRows, d};
}

/// body(first row, rows, chunk) for blocks of rows, in order within a chunk; chunks in parallel.
template <class Body>
void for_row_blocks(std::int64_t rows, std::int64_t d, Body&& body) {
  const std::int64_t chunks = column_sums_shape(rows, d).dim(0);
  parallel_rows(chunks, kSumChunkRows * d, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t chunk = begin; chunk < end; ++chunk) {
      const std::int64_t stop = std::min(rows, (chunk + 1) * kSumChunkRows);
      for (std::int64_t row = chunk * kSumChunkRows; row < stop; row += kSumBlockRows)
        body(row, std::min(kSumBlockRows, stop - row), chunk);
    }
  });
}

/// Zeroes scratch before its chunks are summed.
void clear_sums(const Tensor& sums);
/// Adds the rows of `sums` [chunks, D] into its first, and that to or into the target [D], f32 or f64.
void finish_sums(const Tensor& sums, const Target& target);

}  // namespace dew::kernels::cpu
