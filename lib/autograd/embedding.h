// Token embedding on the tape. B samples, L positions here, V vocabulary, D width.
#pragma once

#include "autograd/tape.h"

namespace dew {

/// y[t] = table[tokens[t]]. tokens [T] or [B, L] i32, table [V, D] -> y [T, D], placed as the tokens are.
/// Saves the tokens. The table's gradient is a weight phase. Where axes split the vocabulary the tokens must
/// be replicated over them: those of other parts give zeros, and y is partial. No communication.
Var embedding(Tape& tape, const Tensor& tokens, const Placements& placements, ParamRef table);

}  // namespace dew
