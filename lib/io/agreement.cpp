#include "io/agreement.h"

#include <array>
#include <cstdint>
#include <exception>

#include "base/check.h"

namespace dew {

std::string first_failure(const HostGroup& group, const std::function<void()>& work) {
  std::string message;
  // The one place where a fault is caught: ranks that succeeded would otherwise wait for this one for ever.
  try {
    work();
  } catch (const std::exception& fault) {  // boundary: a fault of one rank becomes one of all
    message = fault.what();
    if (message.empty()) message = "a fault without a message";
  }
  std::array<std::int64_t, 1> failed{message.empty() ? group.size() : group.rank()};
  group.min(failed);
  if (failed[0] == group.size()) return "";
  return group.broadcast(message, static_cast<int>(failed[0]));
}

void succeed_together(const HostGroup& group, const std::function<void()>& work) {
  const std::string message = first_failure(group, work);
  if (!message.empty()) throw SharedError(message);
}

}  // namespace dew
