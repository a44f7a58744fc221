// Between the residual stream, whose tokens are split over the tensor axis, and the maps that tensor splits
// by width, which need all tokens. T tokens of the microbatch on this rank's data coordinate, D width. On one
// tensor rank every op here returns its input.
#pragma once

#include "autograd/scope.h"

namespace dew {

/// The rows of T that tensor rank r keeps: [r c, (r + 1) c) cut at T, c = ceil(T / ranks).
Range own_rows(const Mesh& mesh, std::int64_t tokens);

/// x [own rows, D], sharded over tensor -> [T, D], replicated. All-gather; the derivative is a
/// reduce-scatter, since the gradient of a replicated value is a partial sum. Collective over tensor.
Var whole_tokens(Scope& scope, const Var& x, std::int64_t tokens);

/// y [T, D] -> [own rows, D], sharded over tensor. A partial y is reduce-scattered (derivative: all-gather);
/// a replicated y, of one dim or more and any dtype, is cut (derivative: zeros in the other rows, a partial
/// sum) and nothing is sent. Refuses a y that is sharded already. Collective over tensor.
Var own_tokens(Scope& scope, const Var& y);

}  // namespace dew
