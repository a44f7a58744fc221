// Work that every rank of a group tries and that counts only when all succeed.
#pragma once

#include <functional>
#include <string>

#include "comm/host_group.h"

namespace dew {

/// Runs `work` on this rank and returns, on every rank alike, "" when it succeeded everywhere, else the
/// message of the lowest rank where it threw. `work` must not communicate. Collective over the group.
std::string first_failure(const HostGroup& group, const std::function<void()>& work);

/// As above, and throws SharedError with the message on every rank.
void succeed_together(const HostGroup& group, const std::function<void()>& work);

}  // namespace dew
