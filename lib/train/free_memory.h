// What a node can still give.
#pragma once

#include <cstdint>

namespace dew {

/// Bytes that this process's node can still give: what the system calls available, or what the limits of the
/// process's control groups leave, whichever is less. Page cache that can be dropped counts as free.
std::int64_t free_memory();

}  // namespace dew
