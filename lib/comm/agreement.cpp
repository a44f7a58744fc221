#include "comm/agreement.h"

#include <algorithm>
#include <exception>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "comm/mpi_env.h"

namespace dew {

std::string first_failure(const HostGroup& group, const std::function<void()>& work) {
  std::string mine;
  // The one place where a fault is caught: ranks that succeeded would otherwise wait for this one for ever.
  try {
    work();
  } catch (const std::exception& fault) {  // boundary: a fault of one rank becomes one of all
    mine = fault.what();
    if (mine.empty()) mine = "a fault without a message";
  }
  std::int64_t failed = mine.empty() ? 0 : 1;
  group.sum(std::span<std::int64_t>(&failed, 1));
  if (failed == 0) return {};
  const std::vector<std::string> messages = group.gather(mine), hosts = group.gather(host_name());
  const auto first =
      std::find_if(messages.begin(), messages.end(), [](const auto& text) { return !text.empty(); });
  if (std::all_of(messages.begin(), messages.end(), [&first](const auto& text) { return text == *first; }))
    return *first;
  const auto rank = static_cast<std::size_t>(first - messages.begin());
  return format("%s (on rank %zu, host %s)", first->c_str(), rank, hosts[rank].c_str());
}

void succeed_together(const HostGroup& group, const std::function<void()>& work) {
  const std::string message = first_failure(group, work);
  if (!message.empty()) throw SharedError(message);
}

}  // namespace dew
