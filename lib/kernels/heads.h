// Heads chosen by a list. B samples, S positions, G heads, K head width, N heads of the list.
#pragma once

#include <span>

#include "kernels/gemm.h"

namespace dew::kernels {

/// y[b, s, i] = x[b, s, heads[i]]. x [B, S, G, K], y [B, S, N, K] of one floating dtype. Throws Error on a
/// head outside x.
void select_heads(Stream& stream, const Tensor& x, std::span<const std::int64_t> heads, const Tensor& y);

/// dx[b, s, heads[i]] += dy[b, s, i] in the order of the list; when not accumulating dx is zeroed first.
void select_heads_backward(Stream& stream, const Tensor& dy, std::span<const std::int64_t> heads,
                           const Target& dx);

}  // namespace dew::kernels
