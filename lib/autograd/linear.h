// Matrix products with a weight. T tokens, D in, F out.
#pragma once

#include "autograd/tape.h"

namespace dew {

/// y = x W^T. x [T, D], w [F, D] -> y [T, F], of this rank's part of w. Saves x. The weight gradient is a
/// phase of its own. Over an axis that splits F (column parallel, arXiv:1909.08053 section 3) x must be
/// replicated, and y is sharded; over one that splits D (row parallel) x must be sharded by D, and y is
/// partial; over all others y is placed as x is. No communication.
Var linear(Tape& tape, const Var& x, ParamRef w);

/// y = x + bias in every row. x, y [T, F], bias [F]. Saves nothing. The bias must be split as x's width is:
/// over an axis that splits it x must be sharded. Refuses partial sums, to which every rank would add it.
Var add_bias(Tape& tape, const Var& x, ParamRef bias);

}  // namespace dew
