#include "train/agree.h"

#include <algorithm>
#include <exception>
#include <vector>

#include "base/text.h"
#include "comm/mpi_env.h"

namespace dew {

std::string agree(const HostGroup& ranks, const std::function<void()>& work) {
  std::string mine;
  try {
    work();
  } catch (const std::exception& error) {  // boundary: an error of one rank becomes one of all
    mine = error.what();
    if (mine.empty()) mine = "unknown error";
  }
  std::int64_t failed = mine.empty() ? 0 : 1;
  ranks.sum({&failed, 1});
  if (failed == 0) return {};
  const std::vector<std::string> messages = ranks.gather(mine), hosts = ranks.gather(host_name());
  const auto first =
      std::find_if(messages.begin(), messages.end(), [](const auto& text) { return !text.empty(); });
  if (std::count(messages.begin(), messages.end(), *first) == static_cast<std::ptrdiff_t>(messages.size()))
    return *first;
  const std::size_t rank = static_cast<std::size_t>(first - messages.begin());
  return format("%s (on rank %zu, host %s)", first->c_str(), rank, hosts[rank].c_str());
}

}  // namespace dew
