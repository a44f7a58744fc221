// Work that every rank tries and that counts only when all succeed: an error of some ranks becomes an error
// of all, so that none waits for another that has left.
#pragma once

#include <functional>
#include <string>

#include "comm/host_group.h"

namespace dew {

/// Runs `work` on every rank and returns "" when it succeeded everywhere, else the message of the lowest rank
/// where it threw, the same on every rank; it names rank and host where not all ranks failed alike. `work`
/// must not communicate. Collective over the group.
std::string first_failure(const HostGroup& group, const std::function<void()>& work);

/// As above, and throws SharedError with the message on every rank.
void succeed_together(const HostGroup& group, const std::function<void()>& work);

}  // namespace dew
