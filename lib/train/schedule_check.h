// Simulates the programs of all stages: is everything done, in order, without deadlock, and what does it
// cost.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "train/action.h"

namespace dew {

/// Seconds (or any unit) of one action on one microbatch and chunk. A backward that is not split takes
/// input + weight.
struct ActionTimes {
  double forward = 1, input = 1, weight = 1;
};

struct ScheduleReport {
  double seconds = 0;        ///< from the first action to the last one of any stage
  std::vector<double> busy;  ///< by stage: time in computing actions
  std::vector<int>
      peak_live;          ///< by stage: (chunk, microbatch) pairs between forward and the end of the backward
  double bubble() const;  ///< share of the stages' time that is not busy: 1 - sum(busy) / (stages seconds)
  int most_live() const;
};

/// Runs the programs against each other: sends never block, a computing action waits for what was received,
/// transfers take no time. Throws Error, with the programs around the action marked "<-- here", unless every
/// microbatch of every chunk runs forward once and backward once (B, or I then W) on its stage, in microbatch
/// order within a chunk; every receive meets its send in the pair's order; nobody waits for ever; R follows a
/// B or W directly, and each chunk ends with one. `times` by stage; one entry serves all.
ScheduleReport check_schedule(std::span<const Program> programs, const PipelineShape& shape,
                              std::span<const ActionTimes> times);

/// The programs as a table for people: one row a stage, one column a unit of time.
std::string draw(std::span<const Program> programs, const PipelineShape& shape);

}  // namespace dew
