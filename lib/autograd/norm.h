// Normalisation ops. T tokens, D width.
#pragma once

#include "autograd/tape.h"

namespace dew {

/// y = x / sqrt(mean(x^2) + eps) * weight (RMSNorm, arXiv:1910.07467). x, y [T, D]; weight [D]. Saves x and
/// one number a token. Refuses partial sums.
Var rms_norm(Tape& tape, const Var& x, ParamRef weight, double eps);

}  // namespace dew
