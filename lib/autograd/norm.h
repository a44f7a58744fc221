// Normalisation ops. T tokens, D width.
#pragma once

#include <optional>

#include "autograd/tape.h"

namespace dew {

/// y = x / sqrt(mean(x^2) + eps) * weight (RMSNorm, arXiv:1910.07467). x, y [..., D]; weight [D]. Saves x and
/// one number a row. Refuses partial sums.
Var rms_norm(Tape& tape, const Var& x, ParamRef weight, double eps);

/// y = (x - mean) / sqrt(variance + eps) * weight + bias (LayerNorm, arXiv:1607.06450). x, y [..., D];
/// weight, bias [D]. Saves x and two numbers a row. Refuses partial sums.
Var layer_norm(Tape& tape, const Var& x, ParamRef weight, std::optional<ParamRef> bias, double eps);

}  // namespace dew
