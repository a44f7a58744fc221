// What the halves of a layer share: normalisations and linear maps with their parameters, and the way back
// into the residual stream. T tokens, D width.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "autograd/norm.h"
#include "kernels/dropout.h"
#include "model/block.h"

namespace dew {

struct NormConfig {
  bool layer = false;  ///< LayerNorm, else RMSNorm
  bool bias = false;   ///< of LayerNorm
  double eps = 1e-5;
};

/// One normalisation over the last dim.
class NormPart {
 public:
  /// Appends its parameters to a block's: NAME [width], and NAME_bias where there is one.
  NormPart(const NormConfig& config, const std::string& name, DimMeaning meaning, std::int64_t width,
           std::vector<ParamSpec>& params);

  Var forward(Tape& tape, const Var& x) const;

 private:
  NormConfig config_;
  ParamRef weight_;
  std::optional<ParamRef> bias_;
};

/// A linear map [F, D], and its bias [F] where it has one.
struct LinearMap {
  ParamRef weight;
  std::optional<ParamRef> bias;

  /// W x + bias. x [T, D] -> [T, F]. For maps whose result is whole or split by F, never a partial sum.
  Var forward(Tape& tape, const Var& x) const;
};

/// Appends a map's parameters to a block's. `bias_name` is empty for a map without one.
LinearMap add_map(ParamSpec weight, const std::string& bias_name, std::vector<ParamSpec>& params);

/// How much of what enters the residual stream is dropped while training.
struct ResidualDropout {
  double rate = 0;
  std::string site;  ///< names the draws; the same in every layout
};

/// The draws of a site in this step; none while evaluating.
kernels::Dropout draws_of(const Microbatch& microbatch, const std::string& site, double rate);

/// x with elements dropped. x: the own rows of [T, D].
Var dropped(Scope& scope, const Microbatch& microbatch, const ResidualDropout& dropout, const Var& x);

/// x + dropout(y + bias): the end of a half layer. x: the own rows of [T, D]; y: the same rows, or all of T
/// (`gathered`), perhaps as a partial sum. Collective over tensor when gathered.
Var into_residual(Scope& scope, const Microbatch& microbatch, const ResidualDropout& dropout, bool gathered,
                  std::optional<ParamRef> bias, const Var& x, const Var& y);

}  // namespace dew
