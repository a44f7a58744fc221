// Simulates the programs of all stages: is everything done, in order, without deadlock, and what does it
// cost.
#pragma once

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
  double seconds = 0;        ///< from the first action to the end of the last one of any stage
  std::vector<double> busy;  ///< by stage: time in computing actions
  std::vector<int>
      peak_live;  ///< by stage: most (chunk, microbatch) pairs between forward and the end of B or W
  std::vector<int> peak_deferred;  ///< by stage: most pairs between I and the end of W, which hold less
  double bubble() const;  ///< share of the stages' time that is not busy: 1 - sum(busy) / (stages seconds)
  int most_live() const;
};

/// Runs the lowered programs (indexed by stage) against each other: sends never block, a computing action
/// waits for what it receives, transfers and reductions take no time. O(actions). `times` by stage; one entry
/// serves all.
///
/// Throws Error with the reason and the offending stage's program around the action marked "<-- here", unless
///  * every microbatch of every chunk runs forward once and backward once (B, or I and later W) on its stage,
///    each of F, of B or I, and of B or W in microbatch order within a chunk;
///  * every message is sent behind the action that makes it and received before the action that needs it,
///    each once, and receives from a rank stand in the order in which it sends;
///  * R stands directly behind a B or W, at least behind the last one of each chunk;
///  * nobody waits for ever.
/// Reasons: "missing", "duplicate", "out of order", "misplaced", "mismatch" (a receive that meets another
/// message than its send), "deadlock" (what each stuck stage waits for).
ScheduleReport check_schedule(std::span<const Program> programs, const PipelineShape& shape,
                              std::span<const ActionTimes> times);

/// The same of an evaluation: every microbatch of every chunk runs forward once, nothing runs backward.
ScheduleReport check_evaluation(std::span<const Program> programs, const PipelineShape& shape,
                                std::span<const ActionTimes> times);

/// Lowered programs as a table for people: one row a stage, one column a unit of time. F, I and W take one
/// unit, B two (the second is "-"); a stage that waits has ".". With several chunks the chunk stands in
/// front: "1F0". The line of numbers counts the units. Throws Error when the programs' messages do not match
/// or wait for ever.
std::string draw(std::span<const Program> programs, const PipelineShape& shape);

}  // namespace dew
