// Softmax attention on the tape. B samples, L queries, S keys, H query heads, G key/value heads, K head
// width.
#pragma once

#include "autograd/tape.h"
#include "kernels/attention.h"

namespace dew {

/// o = dropout(softmax(q k^T / sqrt(K) + mask)) v. q, o [B, L, H, K]; k, v [B, S, G, K]. Saves q, k, v, o and
/// one number a query and head. Refuses partial sums.
Var attention(Tape& tape, const Var& q, const Var& k, const Var& v, const kernels::AttentionMask& mask,
              const kernels::AttentionDropout& dropout = {});

}  // namespace dew
