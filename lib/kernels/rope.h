// Rotary position embedding (arXiv:2104.09864) in the half-rotation order of Hugging Face: element i of the
// first half of a head turns with element i of the second half, by position * theta^(-2 i / K).
#pragma once

#include <compare>
#include <vector>

#include "kernels/gemm.h"

namespace dew::kernels {

enum class RopeDirection : bool { kForward, kInverse };

/// Llama 3's stretch of the slow angles, for contexts beyond the one first trained on: angles that turn fewer
/// than `low` times within `original` positions are divided by `factor`, those that turn more than `high`
/// times stay, and those between are blended linearly in their turns.
struct RopeScaling {
  double factor = 1, low = 1, high = 4;
  double original = 0;  ///< positions; 0: no stretch
  // NOLINTNEXTLINE(modernize-use-nullptr): the check sees a zero in what the compiler writes
  auto operator<=>(const RopeScaling&) const = default;
};

struct RopeAngles {
  double theta = 10000;
  RopeScaling scaling{};
  // NOLINTNEXTLINE(modernize-use-nullptr): the check sees a zero in what the compiler writes
  auto operator<=>(const RopeAngles&) const = default;
};

/// Radians a position of the pairs i = 0 .. K/2 - 1.
std::vector<double> rope_frequencies(std::int64_t head_width, const RopeAngles& angles);

/// Cosines and sines of the positions [begin, end): table [end - begin, K] with the K/2 cosines first. f32 or
/// f64; angles are computed in f64.
void rope_table(Stream& stream, std::int64_t begin, std::int64_t end, const RopeAngles& angles,
                const Tensor& table);

/// y = x turned forward or back. x, y [B, L, H, K] (y may be x). The token at (b, l) takes row l of table [L,
/// K], or, where rows [B, L] i32 is defined, row rows[b, l] of table [P, K]; Throws Error on a row outside
/// the table. `y.accumulate` adds to y (then y is not x). Enqueued on the stream.
void rope(Stream& stream, const Tensor& x, const Tensor& table, const Tensor& rows, RopeDirection direction,
          const Target& y);

}  // namespace dew::kernels
