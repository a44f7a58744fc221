// Programs of whole pipelines for the tests of schedules.
#pragma once

#include <array>
#include <vector>

#include "train/lowering.h"
#include "train/schedule_check.h"
#include "train/schedules.h"

namespace dew {

inline constexpr std::array<PipelineSchedule, 4> kAllSchedules{
    PipelineSchedule::kGpipe, PipelineSchedule::kOneFOneB, PipelineSchedule::kInterleaved,
    PipelineSchedule::kZeroBubble};
inline constexpr std::array<ActionTimes, 1> kUnitTimes{};  ///< F = I = W = 1, B = 2

inline std::vector<Program> compute_programs(PipelineSchedule kind, const PipelineShape& shape) {
  std::vector<Program> programs;
  for (int s = 0; s < shape.stages; ++s) programs.push_back(compute_program(kind, shape, s));
  return programs;
}

inline std::vector<Program> lowered_programs(PipelineSchedule kind, const PipelineShape& shape,
                                             bool reduce_each = false) {
  return lower(compute_programs(kind, shape), shape, reduce_each);
}

inline ScheduleReport report_of(PipelineSchedule kind, const PipelineShape& shape) {
  return check_schedule(lowered_programs(kind, shape), shape, kUnitTimes);
}

}  // namespace dew
