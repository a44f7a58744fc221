#include <array>
#include <filesystem>

#include "base/check.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "io/checkpoint.h"
#include "io/checkpoint_format.h"
#include "io/checkpoint_reader.h"

namespace dew {
namespace {

/// Checks the shards of every rank, and that each element of each dataset has one owner: a checksum needs it.
void check_shards(std::span<const NamedShard> shards, const HostGroup& group) {
  const std::array<std::int64_t, 1> mine{static_cast<std::int64_t>(shards.size())};
  std::array<std::int64_t, 1> least = mine, most = mine;
  group.min(least);
  group.max(most);
  std::vector<std::int64_t> owned;
  succeed_together(group, [&] {
    DEW_CHECK(least == most, least[0], most[0]);
    for (const NamedShard& shard : shards) {
      check_shard(shard);
      owned.push_back(shard.owned ? elements_of(shard) : 0);
    }
  });
  group.sum(std::span<std::int64_t>(owned));
  succeed_together(group, [&] {
    for (std::size_t i = 0; i < shards.size(); ++i)
      DEW_CHECK(owned[i] == shards[i].global.numel(), shards[i].name, shards[i].global, owned[i]);
  });
}

/// As rank 0 sees the directory: the views of a network file system may differ.
std::vector<std::int64_t> steps_of_rank_0(const std::string& directory, const HostGroup& group) {
  std::vector<std::int64_t> steps;
  succeed_together(group, [&] {
    if (group.rank() == 0) steps = checkpoint_steps(directory);
  });
  return unpack_numbers(group.broadcast(pack_numbers(steps), 0));
}

/// A damaged file must not count among those that are kept, and must not be lost either.
void set_aside(const std::string& path, const HostGroup& group) {
  if (group.rank() != 0) return;
  std::error_code error;
  std::filesystem::rename(path, path + ".damaged", error);
  if (error) throw Error("cannot rename " + path + " to " + path + ".damaged: " + error.message());
}

}  // namespace

std::optional<Restored> restore_newest(const std::string& directory, std::span<const NamedShard> shards,
                                       std::span<const std::string> optional_prefixes, const HostGroup& group,
                                       const Log& log) {
  const std::vector<std::int64_t> steps = steps_of_rank_0(directory, group);
  if (steps.empty()) return std::nullopt;
  check_shards(shards, group);
  for (const std::int64_t step : steps) {
    const std::string path = directory + "/" + checkpoint_name(step);
    ReadResult result = read_checkpoint(path, shards, optional_prefixes, group);
    if (!result.mismatch.empty())
      throw SharedError("checkpoint " + path + " does not fit this run: " + result.mismatch);
    const RunState& state = result.state;
    if (result.damage.empty() && (state.step != step || state.tokens < 0 || state.epoch < 0 || state.row < 0))
      result.damage = format("it says step %lld, %lld tokens, epoch %lld, row %lld",
                             static_cast<long long>(state.step), static_cast<long long>(state.tokens),
                             static_cast<long long>(state.epoch), static_cast<long long>(state.row));
    if (result.damage.empty())
      return Restored{std::move(result.state), path, std::move(result.missing_prefixes),
                      std::move(result.unused_prefixes)};
    log.line("checkpoint " + path + " is damaged and passed over: " + result.damage);
    succeed_together(group, [&] { set_aside(path, group); });
  }
  throw SharedError("no checkpoint in " + directory + " is whole; the newest is " +
                    checkpoint_name(steps.front()) + ": see the lines above");
}

}  // namespace dew
