// The unit of everything that happens to a model: gather, recomputation, placement on a stage, reduction,
// timing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "autograd/scope.h"
#include "io/batch.h"
#include "model/param_spec.h"

namespace dew {

/// What one forward reads beside activations and weights.
struct Microbatch {
  Batch batch;
  double loss_scale = 1;  ///< 1 / (valid targets of the whole global batch of the step)
  Placements placements;  ///< of everything that is one value a token
  /// Key of all random draws of the step; none where nothing is drawn (evaluation).
  std::optional<std::uint64_t> draws{};
};

class Block {
 public:
  virtual ~Block() = default;
  virtual const std::string& name() const = 0;  ///< "layers.3"
  virtual std::span<const ParamSpec> params() const = 0;
  /// Runs on the tape of the scope. Const: a block has no mutable state. The last block of a chain returns
  /// the loss, [1] f64, as its only output.
  virtual Vars forward(Scope& scope, const Microbatch& microbatch, const Vars& in) const = 0;
  /// False for a block that must not be run twice, since it forms weight gradients in its forward.
  virtual bool may_rerun() const { return true; }
};

}  // namespace dew
