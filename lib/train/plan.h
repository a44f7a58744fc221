// What a run will hold and compute, from a dry run of the same objects that run it, on tensors without
// memory.
#pragma once

#include <map>
#include <span>
#include <string>

#include "comm/communicator.h"
#include "tensor/allocator.h"
#include "train/engine.h"

namespace dew {

struct Plan {
  MemoryUse memory;                       ///< of the rank that holds the most, with the peaks of a whole step
  std::vector<std::int64_t> stage_peaks;  ///< bytes of the rank of each stage that holds the most
  double flops_per_step = 0;              ///< matrix products and attention of rank 0, recomputation included
  double model_flops_per_token =
      0;  ///< matrix products and attention, forward and backward, nothing repeated
  std::map<std::string, Traffic> traffic;  ///< one step of rank 0, by group
  PlacementAudit audit;
};

/// Runs one step and one evaluation on meta tensors as a rank of each stage. Nothing is allocated, no rank is
/// spoken to.
Plan make_plan(const EngineParts& parts, const MeshShape& mesh);

/// Empty when `plan` fits for the ranks of one node, given by their stages; else the message with the numbers
/// and the largest owners.
std::string memory_error(const Plan& plan, std::span<const int> local_stages, std::int64_t available);

/// "weights 1.2 MiB, gradients ..." in the order of size, zero owners left out.
std::string describe_memory(const MemoryUse& use);

}  // namespace dew
