// Softmax attention over positions that are split over the sequence axis. B samples, L queries here, S keys
// here, H query heads, G key/value heads, K head width.
#pragma once

#include "autograd/scope.h"
#include "kernels/attention.h"

namespace dew {

/// o = dropout(softmax(q k^T / sqrt(K) + mask)) v over the positions of all ranks of the sequence axis, in
/// contiguous parts in rank order. q, o [B, L, H, K]; k, v [B, S, G, K]; `mask` says the global positions of
/// the first query and key here. On one rank plain attention. The exchange is the scope's policy's choice;
/// whatever it moves inside the call, o stands where q stood. Collective over sequence.
Var sequence_attention(Scope& scope, const Var& q, const Var& k, const Var& v,
                       const kernels::AttentionMask& mask, const kernels::AttentionDropout& dropout = {});

}  // namespace dew
