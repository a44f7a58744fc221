// When each action of each stage runs, when the programs run against each other.
#pragma once

#include <span>
#include <vector>

#include "train/schedule_check.h"

namespace dew {

struct Interval {
  double start = 0, end = 0;
};
/// By stage and action.
using Timeline = std::vector<std::vector<Interval>>;

/// Plays the programs by the rules of check_schedule, O(actions). `times` by stage, or one entry for all.
/// Throws Error where a receive meets another message than its send, or stages wait for ever.
Timeline play(std::span<const Program> programs, const PipelineShape& shape,
              std::span<const ActionTimes> times);
/// The same with seconds of every action's own, transfers and reductions too: by stage and place in the
/// program.
Timeline play(std::span<const Program> programs, const PipelineShape& shape,
              std::span<const std::vector<double>> seconds);

}  // namespace dew
