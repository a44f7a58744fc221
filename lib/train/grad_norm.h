// The norm of the whole gradient, every element counted once, and the agreement that travels with it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/host_group.h"
#include "train/param_store.h"

namespace dew {

struct StepSums {
  double loss = 0;              ///< of the whole global batch
  double grad_norm = 0;         ///< before clipping
  std::vector<double> squares;  ///< by parameter of the model: sum of squared gradient elements
  bool stop = false;            ///< some rank was asked to stop
  bool save = false;            ///< some rank finds that a save is due
  double wait_seconds = 0;      ///< this rank's wait in the agreement
};

/// What a rank asks of all at a step's end.
struct Wishes {
  bool stop = false, save = false;
};

/// Sums the parts of the loss that each rank counts, the squares of every parameter's owned gradient and the
/// wishes over all ranks, in one message. Collective over `ranks`, the whole job.
StepSums sum_step(const ParamStore& store, double local_loss, Wishes wishes, const HostGroup& ranks);

/// Empty when the loss and every parameter's gradient are finite; else says which is not: "loss is nan",
/// "gradient of layers.0.mlp.up is inf".
std::string non_finite(const ParamStore& store, const StepSums& sums);

/// Throws SharedError naming the first parameter whose weights are not finite. Collective over `ranks`.
void check_finite_weights(const ParamStore& store, std::int64_t step, const HostGroup& ranks);

/// The factor that brings the norm down to `limit`: 1 below it (as torch.nn.utils.clip_grad_norm_, without
/// its epsilon).
double clip_factor(double norm, double limit);

}  // namespace dew
