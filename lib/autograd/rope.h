// Rotary position embedding on the tape, and the tables of its cosines and sines.
// B samples, L positions here, H heads, K head width.
#pragma once

#include <map>
#include <tuple>

#include "autograd/tape.h"
#include "kernels/rope.h"

namespace dew {

/// Tables by (first position, length, head width, angles, dtype): made once, the same for every layer and
/// step.
class RopeTables {
 public:
  /// [length, K]: the cosines, then the sines, of the global positions [begin, begin + length).
  const Tensor& get(Stream& stream, std::int64_t begin, std::int64_t length, std::int64_t head_width,
                    const kernels::RopeAngles& angles, DType dtype);

 private:
  using TableKey = std::tuple<std::int64_t, std::int64_t, std::int64_t, kernels::RopeAngles, DType>;
  std::map<TableKey, Tensor> tables_;
};

/// y = x turned by its positions. x, y [B, L, H, K]; table [L, K], or [P, K] of which the tokens take `rows`
/// [B, L] i32. Saves the table and rows alone.
Var rope(Tape& tape, const Var& x, const Tensor& table, const Tensor& rows = {});

}  // namespace dew
