// The feed-forward half of a transformer layer. T tokens, D width, F hidden width.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/parts/maps.h"

namespace dew {

enum class Activation : std::uint8_t { kSwiglu, kGelu, kGeluTanh };

struct MlpConfig {
  std::int64_t width = 0, hidden = 0;
  Activation activation = Activation::kSwiglu;
  bool bias = false;
  NormConfig norm;
  double dropout = 0;  ///< of what enters the residual stream
  double init_std = 0.02, out_init_std = 0.02;
};

class MlpPart {
 public:
  /// Appends its parameters to a block's: norm [D]; gate (gated activations alone), up [F, D]; down [D, F];
  /// their biases.
  MlpPart(const MlpConfig& config, const std::string& prefix, std::vector<ParamSpec>& params);

  /// x + dropout(down a(up h)) with h = norm(x) and a the activation; swiglu takes gate h as well. x: the own
  /// rows of [T, D].
  Var forward(Scope& scope, const Microbatch& microbatch, const Var& x) const;

 private:
  Activation activation_;
  NormPart norm_;
  std::optional<LinearMap> gate_;
  LinearMap up_, down_;
  ResidualDropout dropout_;
};

}  // namespace dew
