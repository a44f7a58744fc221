// Pipeline schedules: what a stage computes, in which order. Programs of F, B, I and W alone; transfers and
// reductions are added by lowering. Each runs the microbatches of a chunk in order, so that all give the same
// bits.
#pragma once

#include <string>

#include "io/run_spec.h"
#include "train/action.h"

namespace dew {

/// F0 B0 F1 B1 ...: one stage, nothing to overlap.
Program sequential(const PipelineShape& shape, int stage);
/// All forwards, then all backwards (arXiv:1811.06965). Every microbatch is live at the end of the forwards.
Program gpipe(const PipelineShape& shape, int stage);
/// One forward, one backward after a warm-up of stages - 1 - stage forwards (arXiv:2006.09503): at most
/// stages - stage microbatches are live.
Program one_f_one_b(const PipelineShape& shape, int stage);
/// 1F1B over several chunks a rank (arXiv:2104.04473, section 2.2): a smaller bubble for more transfers. Any
/// number of microbatches.
Program interleaved(const PipelineShape& shape, int stage);
/// 1F1B with the backward in two: input gradients first, weight gradients where the rank would wait (ZB-H1,
/// arXiv:2401.10241). No more microbatches are live than under 1F1B.
Program zero_bubble(const PipelineShape& shape, int stage);

/// The schedule of this kind; `sequential` on one stage whatever the kind.
Program compute_program(PipelineSchedule kind, const PipelineShape& shape, int stage);

/// Empty, or why the schedule cannot run in this shape, with the numbers.
std::string schedule_obstacle(PipelineSchedule kind, const PipelineShape& shape);

}  // namespace dew
