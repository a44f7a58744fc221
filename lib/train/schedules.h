// Pipeline schedules: what a stage computes, in which order. Programs of F, B, I and W alone; transfers and
// reductions are added by lowering. Each runs the microbatches of a chunk in order, in F, in B or I and in W,
// so that all add the same gradients in the same order and give the same bits.
//
// Bubbles below are idle time of a stage in a step, S stages, M microbatches, F, I and W the times of one
// action (B = I + W).
#pragma once

#include <string>

#include "io/run_spec.h"
#include "train/action.h"

namespace dew {

/// F0 B0 F1 B1 ...: one stage, nothing to overlap.
Program sequential(const PipelineShape& shape, int stage);
/// F0 I0 W0 F1 I1 W1 ...: one stage; the same sums as `sequential` by way of deferred weight gradients.
Program split_backward(const PipelineShape& shape, int stage);
/// All forwards, then all backwards (arXiv:1811.06965, but with the backwards in order). Every microbatch is
/// live at the end of the forwards. Bubble (S - 1)(F + B).
Program gpipe(const PipelineShape& shape, int stage);
/// One forward, one backward after a warm-up of S - 1 - stage forwards (arXiv:2006.09503): at most
/// min(M, S - stage) microbatches are live. Bubble (S - 1)(F + B).
Program one_f_one_b(const PipelineShape& shape, int stage);
/// 1F1B over several chunks a rank (arXiv:2104.04473, section 2.2): each visits a group of microbatches,
/// chunk after chunk. Any number of microbatches: they are parted evenly into floor(M / S) groups of at least
/// S (one group where M < S), so that a group's first microbatch has gone round before its last one leaves.
/// At most 2 (S - 1 - stage) + (chunks - 1) * largest group + 1 pairs of chunk and microbatch are live.
/// Bubble (S - 1)(F + B) of single chunks where M >= S: 1 / chunks of 1F1B's, for `chunks` times its
/// transfers. With one chunk it is 1F1B.
Program interleaved(const PipelineShape& shape, int stage);
/// 1F1B with the backward in two, ZB-H1 of arXiv:2401.10241: I follows F as B does in 1F1B, W lags S - 1
/// microbatches behind F on every stage, so that it fills what the later stages would wait at the end.
/// Microbatches between F and W: min(M, S) on every stage, no more than on 1F1B's fullest, the first; of them
/// min(M, S - stage) before I, as under 1F1B, and up to min(M, stage + 1) between I and W, of which only what
/// the weight gradients need is kept (inputs and output gradients of the products). Bubble
/// (S - 1) max(F, I, F + I - W) where M >= S: the paper's (S - 1)(F + I - W) unless W is the longest.
Program zero_bubble(const PipelineShape& shape, int stage);

/// The schedule of this kind; `sequential` on one stage whatever the kind. Throws Error with
/// `schedule_obstacle`'s words where there is one.
Program compute_program(PipelineSchedule kind, const PipelineShape& shape, int stage);

/// Empty, or why the schedule cannot run in this shape, with the numbers: extents below 1, or several chunks
/// on one stage or under a schedule other than interleaved.
std::string schedule_obstacle(PipelineSchedule kind, const PipelineShape& shape);

}  // namespace dew
