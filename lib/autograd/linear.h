// Matrix products with a weight. T tokens, D in, F out.
#pragma once

#include "autograd/tape.h"

namespace dew {

/// y = x W^T. x [T, D], w [F, D] -> y [T, F]. Saves x. The weight gradient is a phase of its own.
Var linear(Tape& tape, const Var& x, ParamRef w);

}  // namespace dew
