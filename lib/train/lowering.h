// From what the stages compute to what their ranks do: transfers and reductions are added.
#pragma once

#include <span>
#include <vector>

#include "train/action.h"

namespace dew {

/// Adds to the compute-only programs of all stages: a send directly behind the action that makes what it
/// sends; a receive before the action that needs it, one computing action earlier where that can be, so that
/// the message travels beside it; receives from one rank in the order in which that rank sends (messages
/// between a pair match in order, forward and backward alike); and R behind the last backward of each chunk
/// (behind each backward, when `reduce_each`).
std::vector<Program> lower(std::span<const Program> compute, const PipelineShape& shape, bool reduce_each);

/// The lowered programs of a forward alone, for an evaluation: every chunk once, microbatch 0.
std::vector<Program> lowered_evaluation(const PipelineShape& shape);

}  // namespace dew
