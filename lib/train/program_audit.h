// What can be said of each stage's program by itself: complete, in order, with its transfers and reductions.
#pragma once

#include <cstddef>
#include <string>

#include "train/action.h"

namespace dew {

/// "stage 1: ... 0F1 0SF1 <-- here 0B0 ...": the program around action `at`; at the end when `at` is its
/// size.
std::string program_around(int stage, const Program& program, std::size_t at);

/// Throws Error with the reason and the program around the action.
[[noreturn]] void refuse_program(const std::string& reason, int stage, const Program& program,
                                 std::size_t at);

/// Throws Error unless the program has every action of the stage once, each behind what it depends on: see
/// check_schedule. Without `training` it has forwards alone.
void audit_program(const Program& program, const PipelineShape& shape, int stage, bool training);

}  // namespace dew
