// One optimizer step, the same for the trainer, the verification and the benchmark: gradients and their sums
// first, then, when the caller is content with them, the update.
#pragma once

#include "train/data_feed.h"
#include "train/engine.h"
#include "train/grad_norm.h"

namespace dew {

struct StepResult {
  StepSums sums;
  double read_seconds = 0;  ///< spent reading the step's tokens
  double wait_seconds = 0;  ///< waiting for other ranks in agreements
};

/// Reads the microbatches of `step` (counted from 1), runs the program, reduces, and sums loss, norm and
/// wishes over all ranks. The weights are as before. Collective over `ranks`.
StepResult run_gradients(Engine& engine, const DataFeed& feed, std::int64_t step, Wishes wishes,
                         const HostGroup& ranks, Stream& stream);

/// The learning rate of a step (counted from 1) by the run's schedule.
double rate_of(const RunSpec& spec, std::int64_t step);
/// The factor of the gradient in the update: clipping by the norm of the step.
double gradient_scale(const RunSpec& spec, const StepSums& sums);

/// Optimizer and moving average of a step whose sums are known.
void apply_update(Engine& engine, const RunSpec& spec, std::int64_t step, const StepSums& sums);

}  // namespace dew
