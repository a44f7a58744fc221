// The attention half of a transformer layer. T = B L tokens here, D width, H heads, G key/value heads, K head
// width.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/rope.h"
#include "model/parts/maps.h"

namespace dew {

struct AttentionConfig {
  std::int64_t width = 0, heads = 0, kv_heads = 0, head_width = 0;
  std::optional<kernels::RopeAngles> rope;  ///< none: positions come from elsewhere
  std::int64_t window = 0;                  ///< positions a query sees, itself included; 0: all before it
  bool qk_norm = false;                     ///< RMSNorm of every query and key head, before rope
  bool bias = false;
  NormConfig norm;
  double dropout = 0;  ///< of attention's weights and of what enters the residual stream
  double init_std = 0.02, out_init_std = 0.02;
};

class AttentionPart {
 public:
  /// Appends its parameters to a block's: norm [D]; wq [H K, D]; wk, wv [G K, D]; wo [D, H K]; their biases
  /// bq, bk, bv, bo; q_norm, k_norm [K].
  AttentionPart(const AttentionConfig& config, const std::string& prefix, std::vector<ParamSpec>& params);

  /// x + dropout(wo attention(rope(wq h), rope(wk h), wv h)) with h = norm(x). x: the own rows of [T, D].
  /// Ranks that share heads and have key/value heads whole take those of their query heads.
  Var forward(Scope& scope, const Microbatch& microbatch, const Var& x) const;

 private:
  AttentionConfig config_;
  std::string site_;
  NormPart norm_;
  LinearMap wq_, wk_, wv_, wo_;
  std::optional<NormPart> q_norm_, k_norm_;
};

}  // namespace dew
