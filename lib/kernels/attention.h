// Blockwise softmax attention that never holds an L x S matrix (arXiv:2205.14135 idea, own loops).
// B samples, L queries, S keys, H query heads, G key/value heads (H = G * group), K head width.
#pragma once

#include <cstdint>

#include "kernels/dropout.h"
#include "kernels/gemm.h"

namespace dew::kernels {

/// Which keys a query may see, by global positions: query i stands at query_begin + i, key j at key_begin +
/// j.
struct AttentionMask {
  bool causal = true;  ///< keys after the query are hidden
  std::int64_t window =
      0;  ///< when > 0, keys at distance >= window behind the query are hidden; needs causal
  std::int64_t query_begin = 0;
  std::int64_t key_begin = 0;
  /// [B, P] i32 or undefined: the global position at which the document of each global position begins, never
  /// falling along P; keys before it are hidden. Needs causal.
  Tensor starts{};
};

/// Which weights are dropped, drawn by (key, global row and head, key position, query position).
struct AttentionDropout {
  Dropout draw{};
  std::int64_t first_row = 0, first_head = 0;  ///< global ones of sample 0 and query head 0
};

/// o = dropout(softmax(q k^T / sqrt(K) + mask)) v. q, o [B, L, H, K]; k, v [B, S, G, K]; log_sum_exp [B, H,
/// L] (f32, or f64 for f64) is kept for the backward. A query that sees no key gets 0 and -infinity. Enqueued
/// on the stream.
void attention_forward(Stream& stream, const Tensor& q, const Tensor& k, const Tensor& v,
                       const AttentionMask& mask, const AttentionDropout& dropout, const Tensor& o,
                       const Tensor& log_sum_exp);

/// Gradients of attention_forward from d_o [B, L, H, K]: dq as q, dk and dv as k.
void attention_backward(Stream& stream, const Tensor& q, const Tensor& k, const Tensor& v,
                        const AttentionMask& mask, const AttentionDropout& dropout, const Tensor& o,
                        const Tensor& log_sum_exp, const Tensor& d_o, const Target& dq, const Target& dk,
                        const Target& dv);

}  // namespace dew::kernels
