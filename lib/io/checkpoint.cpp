#include "io/checkpoint.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "base/check.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "io/checkpoint_writer.h"
#include "io/durable_file.h"
#include "io/hdf5_file.h"

namespace dew {
namespace {

/// The step in "step_XXXXXXXX.h5", or -1 for any other name.
std::int64_t step_of(std::string_view name) {
  constexpr std::string_view kHead = "step_", kTail = ".h5";
  if (!name.starts_with(kHead) || !name.ends_with(kTail)) return -1;
  const std::string_view digits = name.substr(kHead.size(), name.size() - kHead.size() - kTail.size());
  std::int64_t step = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole && step >= 0 && name == checkpoint_name(step) ? step : -1;
}

/// Removes what is older than the newest `keep` files that open, `step` the newest of them. Later steps are
/// left: they are files that a restore refused, and the run will reach and replace them.
void remove_old(const std::string& directory, std::int64_t step, std::int64_t keep) {
  std::int64_t kept = 0;
  bool removed = false;
  for (const std::int64_t old : checkpoint_steps(directory)) {
    if (old > step) continue;
    const std::string path = directory + "/" + checkpoint_name(old);
    if (kept == keep) {
      std::filesystem::remove(path);
      removed = true;
    } else if (old == step || Hdf5File::opens(path)) {
      ++kept;
    }
  }
  if (removed) sync_path(directory);
}

}  // namespace

std::string checkpoint_name(std::int64_t step) {
  return format("step_%08lld.h5", static_cast<long long>(step));
}

std::vector<std::int64_t> checkpoint_steps(const std::string& directory) {
  std::vector<std::int64_t> steps;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error))
    if (const std::int64_t step = step_of(entry.path().filename().string());
        step >= 0 && !entry.is_fifo(error))
      steps.push_back(step);
  if (error && error != std::errc::no_such_file_or_directory)
    throw Error("cannot list " + directory + ": " + error.message());
  std::ranges::sort(steps, std::greater<>());
  return steps;
}

void save_checkpoint(const std::string& directory, std::span<const NamedShard> shards, const RunState& state,
                     std::int64_t keep, const HostGroup& group) {
  DEW_CHECK(keep >= 1 && state.step >= 0, keep, state.step);
  CheckpointWriter writer(directory, shards, state, group);
  writer.prepare();
  writer.write();
  writer.sync();
  writer.publish();
  succeed_together(group, [&] {
    if (group.rank() == 0) remove_old(directory, state.step, keep);
  });
}

}  // namespace dew
