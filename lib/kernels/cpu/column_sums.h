// Sums over tokens for the gradient of a vector, in an order that no thread count changes: chunks of tokens,
// each into a row of its own in what they are computed in, and these rows in order and in f64.
#pragma once

#include <algorithm>

#include "kernels/cpu/parallel.h"
#include "kernels/gemm.h"

namespace dew::kernels::cpu {

/// Tokens whose sum is one row of scratch.
inline constexpr std::int64_t kSumChunkRows = 64;

/// Of the scratch of a sum over `rows` of width `d`, f32 or f64.
inline Shape column_sums_shape(std::int64_t rows, std::int64_t d) {
  return {(rows + kSumChunkRows - 1) / kSumChunkRows, d};
}

/// body(row, chunk) for every row, in order within a chunk; chunks in parallel.
template <class Body>
void for_chunked_rows(std::int64_t rows, std::int64_t d, Body&& body) {
  const std::int64_t chunks = column_sums_shape(rows, d).dim(0);
  parallel_rows(chunks, kSumChunkRows * d, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t chunk = begin; chunk < end; ++chunk) {
      const std::int64_t stop = std::min(rows, (chunk + 1) * kSumChunkRows);
      for (std::int64_t row = chunk * kSumChunkRows; row < stop; ++row) body(row, chunk);
    }
  });
}

/// Zeroes scratch before its chunks are summed.
void clear_sums(const Tensor& sums);
/// The sum of the rows of `sums` [chunks, D] to or into the target [D], f32 or f64.
void finish_sums(const Tensor& sums, const Target& target);

}  // namespace dew::kernels::cpu
