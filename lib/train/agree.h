// Turns an error of some ranks into an error of all, so that none waits for another that has left.
#pragma once

#include <functional>
#include <string>

#include "comm/host_group.h"

namespace dew {

/// Runs `work` on every rank and returns "" when all succeeded, else the message of the lowest rank that
/// failed, the same on every rank; it names rank and host where not all ranks failed alike. Collective over
/// `ranks`; `work` must not be collective. The one place of the library where an exception is caught.
std::string agree(const HostGroup& ranks, const std::function<void()>& work);

}  // namespace dew
