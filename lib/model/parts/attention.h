// The attention half of a transformer layer. T = B L tokens here, D width, H heads, G key/value heads, K head
// width.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/block.h"

namespace dew {

struct AttentionConfig {
  std::int64_t width = 0, heads = 0, kv_heads = 0, head_width = 0;
  double rope_theta = 10000;
  std::int64_t window = 0;  ///< positions a query sees, itself included; 0: all before it
  double norm_eps = 1e-5;
  double init_std = 0.02, out_init_std = 0.02;
};

class AttentionPart {
 public:
  /// The part's parameters begin at `first` of the block's list.
  AttentionPart(const AttentionConfig& config, int first) : config_(config), first_(first) {}

  /// norm [D]; wq [H K, D]; wk, wv [G K, D]; wo [D, H K].
  std::vector<ParamSpec> params(const std::string& prefix) const;
  static constexpr int kParamCount = 5;

  /// x + wo attention(rope(wq h), rope(wk h), wv h) with h = norm(x). x: the own rows of [T, D]. Ranks that
  /// share heads and have key/value heads whole take those of their query heads.
  Var forward(Scope& scope, const Microbatch& microbatch, const Var& x) const;

 private:
  AttentionConfig config_;
  int first_;
};

}  // namespace dew
