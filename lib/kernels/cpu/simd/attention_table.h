// The leaf loops of attention as function pointers, chosen like those of table.h. Scores are held transposed,
// keys as rows and queries as lanes: the sums over keys then run down the lanes, and only the query blocks
// need a transpose.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/matrix_table.h"

namespace dew::kernels::cpu {

/// Which lanes of a tile are visible: of key row j the lanes i with first + j <= i < first + j + window.
struct TileMask {
  bool partial = false;  ///< false: all are
  std::int64_t first = 0;
  std::int64_t window = 0;  ///< at least 1
  /// Where documents begin within the tile, null where they do not: of lane i the key rows j with row + j <
  /// before[i] are hidden.
  const float* before = nullptr;
  std::int64_t row = 0;
};

/// Loops over T = float or double.
template <class T>
struct AttentionOps {
  /// One step of the online softmax (arXiv:2205.14135, algorithm 1): scores [keys, width] become e^(scale
  /// score
  /// - largest), 0 where hidden; largest and sum [width] take these keys in; factor [width] is what earlier
  /// results are scaled by.
  void (*softmax_step)(std::int64_t keys, std::int64_t width, const TileMask& mask, T scale, Matrix<T> scores,
                       T* largest, T* sum, T* factor);
  /// scores become p = e^(scale score - log_sum_exp), 0 where hidden; d_p becomes d_scale p (d_p - delta).
  /// Both [keys, width].
  void (*softmax_gradient)(std::int64_t keys, std::int64_t width, const TileMask& mask, T scale, T d_scale,
                           Matrix<T> scores, Matrix<T> d_p, const T* log_sum_exp, const T* delta);

  /// y [rows, n] = factor[row] x, or added to y. y may be x.
  void (*scale_rows)(std::int64_t rows, std::int64_t n, const T* factor, Matrix<const T> x, Matrix<T> y,
                     bool accumulate);
  /// sums[row] = x[row] . y[row], over n.
  void (*dot_rows)(std::int64_t rows, std::int64_t n, Matrix<const T> x, Matrix<const T> y, T* sums);
};

struct AttentionTable {
  AttentionOps<float> f32;
  AttentionOps<double> f64;
};

/// The table of one instruction set.
const AttentionTable& attention_table(Isa isa);

/// The loops over T on this processor. Throws Error without AVX2 and FMA.
template <class T>
const AttentionOps<T>& attention_ops();

}  // namespace dew::kernels::cpu
