// What launchers tell their processes through the environment. Internal to prepare_launch and its test.
#pragma once

#include <string_view>

namespace dew {

/// The decimal number that a text starts with ("4(x2)" gives 4), or 0.
int leading_number(std::string_view text);

/// Ranks of the job on this node from the environment of Open MPI, MPICH's Hydra, PMI or Slurm; 1 without
/// any.
int local_ranks_of_launcher();

}  // namespace dew
