// From what the stages compute to what their ranks do: transfers and reductions are added.
#pragma once

#include <span>
#include <vector>

#include "train/action.h"

namespace dew {

/// Adds to the compute-only programs of all stages (indexed by stage):
///  * a send behind the action that makes what it sends: SF behind F, SB behind B or I. Where an R belongs to
///    the same B, R comes first, as it runs inside the backward;
///  * a receive before the action that needs it, one computing action earlier where that can be, so that the
///    message travels beside it. Receives from one rank stand in the order in which that rank sends, since
///    messages between a pair match in order, forward and backward alike; one that is sent early but needed
///    late is posted before those sent behind it;
///  * R directly behind the last B or W of each chunk (behind each one, when `reduce_each`).
/// The first virtual stage receives no forward and sends no backward, the last one the reverse; one stage has
/// no transfers. Throws Error where an action needs a message that no action of `compute` makes, or the
/// reverse.
std::vector<Program> lower(std::span<const Program> compute, const PipelineShape& shape, bool reduce_each);

/// The lowered programs of a forward alone, for an evaluation: every chunk once, microbatch 0.
std::vector<Program> lowered_evaluation(const PipelineShape& shape);

}  // namespace dew
