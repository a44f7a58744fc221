// Dropout on the tape. T tokens, D width.
#pragma once

#include "autograd/tape.h"
#include "kernels/dropout.h"

namespace dew {

/// y = x with elements dropped by draws that depend on the key, the global row, the global position and the
/// element alone, so that neither layout nor recomputation changes them. x, y [T, D] of the tokens that
/// `places` tells. Saves nothing: the backward draws again. Linear, so partial sums stay partial.
Var dropout(Tape& tape, const Var& x, const kernels::Dropout& draw, const kernels::TokenPlaces& places);

}  // namespace dew
