// The feed-forward half of a transformer layer. T tokens, D width, F hidden width.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/block.h"

namespace dew {

struct MlpConfig {
  std::int64_t width = 0, hidden = 0;
  double norm_eps = 1e-5;
  double init_std = 0.02, out_init_std = 0.02;
};

class MlpPart {
 public:
  /// The part's parameters begin at `first` of the block's list.
  MlpPart(const MlpConfig& config, int first) : config_(config), first_(first) {}

  /// norm [D]; gate, up [F, D]; down [D, F].
  std::vector<ParamSpec> params(const std::string& prefix) const;

  /// x + down swiglu(gate h, up h) with h = norm(x). x: the own rows of [T, D].
  Var forward(Scope& scope, const Microbatch& microbatch, const Var& x) const;

 private:
  MlpConfig config_;
  int first_;
};

}  // namespace dew
