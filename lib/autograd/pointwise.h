// Elementwise ops and views on the tape. T tokens, F ffn width.
#pragma once

#include "autograd/tape.h"
#include "kernels/gelu.h"

namespace dew {

/// y = a + b, of equal shapes and placements. Saves nothing.
Var add(Tape& tape, const Var& a, const Var& b);

/// y = gate sigmoid(gate) up (SwiGLU, arXiv:2002.05202 eq. 6). gate, up, y [T, F]. Saves both inputs. Refuses
/// partial sums: the function is not linear.
Var swiglu(Tape& tape, const Var& gate, const Var& up);

/// y = gelu(x), exact or in the tanh form (arXiv:1606.08415). x, y [T, F]. Saves x. Refuses partial sums.
Var gelu(Tape& tape, const Var& x, kernels::Gelu kind);

/// The same elements under another shape.
Var reshape(Tape& tape, const Var& x, const Shape& shape);

}  // namespace dew
