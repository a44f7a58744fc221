// Dropout (arXiv:1207.0580) whose draws are a pure function of (key, global row, global position, element).
#pragma once

#include <cstdint>

#include "kernels/gemm.h"

namespace dew::kernels {

struct Dropout {
  std::uint64_t key = 0;  ///< of the site in this step
  double rate = 0;        ///< share dropped, in [0, 1); what stays is divided by 1 - rate

  bool active() const { return rate > 0; }
};

/// Where the tokens of a tensor stand: token t is the `first + t`-th of samples of `length` positions each,
/// which are the global rows from first_row on and the positions from first_position on.
struct TokenPlaces {
  std::int64_t first = 0, length = 1;
  std::int64_t first_row = 0, first_position = 0;
};

/// y = x with elements dropped, or added to y. x, y [T, D] (y may be x). The derivative is the same call on
/// the gradient. An element is drawn by its row, its position and its place in D, wherever the token lies.
void dropout(Stream& stream, const Dropout& draw, const TokenPlaces& places, const Tensor& x,
             const Target& y);

}  // namespace dew::kernels
