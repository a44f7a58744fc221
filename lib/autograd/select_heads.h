// Heads for this rank out of values that every rank has whole. B samples, S positions, G heads, K head width.
#pragma once

#include <cstdint>
#include <vector>

#include "autograd/tape.h"

namespace dew {

/// y[b, s, i] = x[b, s, heads[i]]. x [B, S, G, K] -> y [B, S, heads, K]. `by`: the axes whose ranks choose
/// different heads; over them x must be replicated, and y is sharded. Saves nothing. The derivative adds
/// where a head was chosen, so that over `by` it is a partial sum, as that of a replicated value is.
Var select_heads(Tape& tape, const Var& x, const std::vector<std::int64_t>& heads, AxisSet by);

}  // namespace dew
