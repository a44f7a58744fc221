// Rotary position embedding (arXiv:2104.09864) in the half-rotation order of Hugging Face: element i of the
// first half of a head turns with element i of the second half, by position * theta^(-2 i / K).
#pragma once

#include "kernels/gemm.h"

namespace dew::kernels {

enum class RopeDirection : bool { kForward, kInverse };

/// Cosines and sines of the positions [begin, end): table [end - begin, K] with the K/2 cosines first. f32 or
/// f64; angles are computed in f64.
void rope_table(Stream& stream, std::int64_t begin, std::int64_t end, double theta, const Tensor& table);

/// y = x turned forward or back. x, y [B, L, H, K] (y may be x); table [L, K] of the global positions of the
/// L tokens; `y.accumulate` adds to y (then y is not x). Enqueued on the stream.
void rope(Stream& stream, const Tensor& x, const Tensor& table, RopeDirection direction, const Target& y);

}  // namespace dew::kernels
