// Token embedding on the tape. B samples, L positions here, V vocabulary, D width.
#pragma once

#include "autograd/tape.h"

namespace dew {

/// y[t] = table[tokens[t]]. tokens [B, L] i32, table [V, D] -> y [B L, D], placed as the tokens are. Saves
/// the tokens. The table's gradient is a weight phase.
Var embedding(Tape& tape, const Tensor& tokens, const Placements& placements, ParamRef table);

}  // namespace dew
