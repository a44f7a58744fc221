#include "io/checkpoint_reader.h"

#include <algorithm>
#include <memory>
#include <set>

#include "base/check.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "io/box_runs.h"
#include "io/checkpoint_format.h"
#include "io/checksum.h"

namespace dew {
namespace {

// Small enough that hashing and converting find the elements in the cache, large enough to hide the call.
constexpr std::int64_t kPieceElements = 256 * 1024;

/// Copies with a cast, rounding to nearest even.
template <class T>
void convert(const T* from, std::int64_t count, const NamedShard& shard, std::int64_t at) {
  visit_float(shard.local.dtype(), [&](auto zero) {
    using Local = decltype(zero);
    std::transform(from, from + count, shard.local.data<Local>() + at,
                   [](T x) { return static_cast<Local>(x); });
  });
}

template <class T>
std::uint64_t read_boxes(const Hdf5Dataset& dataset, const NamedShard& shard, std::int64_t piece_elements) {
  const bool direct = shard.local.dtype() == dtype_of<T>();
  std::unique_ptr<T[]> staging;
  if (!direct) staging = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(piece_elements));
  std::uint64_t sum = 0;
  std::int64_t at = 0;
  for (const Slab& box : shard.boxes) {
    for (const Slab& piece : split_box(box, piece_elements)) {
      T* into = direct ? shard.local.data<T>() + at : staging.get();
      dataset.read(piece, into);
      if (shard.owned) sum += hash_box(piece, into);
      if (!direct) convert(into, piece.extent.numel(), shard, at);
      at += piece.extent.numel();
    }
  }
  return sum;
}

/// What rank 0 finds in a file's tree.
struct Inspection {
  std::string mismatch;
  RunState state;
  std::vector<std::int64_t> present;    ///< 1 or 0 for each shard
  std::vector<std::int64_t> checksums;  ///< bits; 0 for a missing one
  std::vector<std::string> missing_prefixes, unused_prefixes;
};

/// The optional prefixes that have shards, of which the file has none.
std::vector<std::string> absent_prefixes(const Hdf5File& file, std::span<const NamedShard> shards,
                                         std::span<const std::string> optional_prefixes) {
  std::vector<std::string> absent;
  for (const std::string& prefix : optional_prefixes) {
    const auto under = [&](const NamedShard& shard) { return shard.name.starts_with(prefix); };
    const auto stored = [&](const NamedShard& shard) { return under(shard) && file.has(shard.name); };
    if (std::ranges::any_of(shards, under) && std::ranges::none_of(shards, stored)) absent.push_back(prefix);
  }
  return absent;
}

/// The optional prefixes that have no shards, of which the file has some.
std::vector<std::string> idle_prefixes(const Hdf5File& file, std::span<const NamedShard> shards,
                                       std::span<const std::string> optional_prefixes) {
  const std::vector<std::string> names = file.names();
  std::vector<std::string> idle;
  for (const std::string& prefix : optional_prefixes) {
    const auto asked = [&](const NamedShard& shard) { return shard.name.starts_with(prefix); };
    const auto stored = [&](const std::string& name) { return name.starts_with(prefix); };
    if (std::ranges::none_of(shards, asked) && std::ranges::any_of(names, stored)) idle.push_back(prefix);
  }
  return idle;
}

std::string missing_message(const Hdf5File& file, const NamedShard& shard) {
  const std::string near = nearest_word(shard.name, file.names());
  return "it has no " + shard.name + " of shape " + shard.global.str() +
         (near.empty() ? "" : "; the nearest name in it is " + near);
}

/// Empty when every tensor of the file in a group that shards ask for is one of theirs: what is left out
/// would be lost, and the model another one.
std::string unasked_message(const Hdf5File& file, std::span<const NamedShard> shards) {
  const auto group_of = [](const std::string& name) { return name.substr(0, name.find('/', 1) + 1); };
  std::set<std::string, std::less<>> asked, groups;
  for (const NamedShard& shard : shards) {
    asked.insert(shard.name);
    groups.insert(group_of(shard.name));
  }
  const auto holds_asked = [&asked](const std::string& name) {
    const auto next = asked.lower_bound(name + '/');
    return next != asked.end() && next->starts_with(name + '/');
  };
  for (const std::string& name : file.names())
    if (groups.contains(group_of(name)) && !asked.contains(name) && !holds_asked(name))
      return "it holds " + name + ", which this run does not have: the model was another one";
  return {};
}

Inspection inspect(const std::string& path, std::span<const NamedShard> shards,
                   std::span<const std::string> optional_prefixes) {
  const Hdf5File file = Hdf5File::open(path);
  Inspection seen;
  const std::int64_t its_format = read_format(file);
  if (its_format != kCheckpointFormat) {
    seen.mismatch = format("its format is %lld and this program reads %lld",
                           static_cast<long long>(its_format), static_cast<long long>(kCheckpointFormat));
    return seen;
  }
  seen.state = read_run_state(file);
  seen.missing_prefixes = absent_prefixes(file, shards, optional_prefixes);
  seen.unused_prefixes = idle_prefixes(file, shards, optional_prefixes);
  for (const NamedShard& shard : shards) {
    const bool expected = std::ranges::none_of(
        seen.missing_prefixes, [&](const std::string& prefix) { return shard.name.starts_with(prefix); });
    seen.present.push_back(expected ? 1 : 0);
    seen.checksums.push_back(0);
    if (!expected) continue;
    if (!file.has(shard.name)) {
      seen.mismatch = missing_message(file, shard);
      return seen;
    }
    const Hdf5Dataset dataset = file.dataset(shard.name);
    if (dataset.shape() != shard.global) {
      seen.mismatch = shard.name + " has shape " + dataset.shape().str() + " in it and " +
                      shard.global.str() + " in this run";
      return seen;
    }
    seen.checksums.back() = static_cast<std::int64_t>(file.read_unsigned(shard.name, kChecksumAttribute));
  }
  seen.mismatch = unasked_message(file, shards);
  return seen;
}

std::string join_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

/// Rank 0's inspection, on every rank.
Inspection share(Inspection seen, const HostGroup& group) {
  seen.mismatch = group.broadcast(seen.mismatch, 0);
  RunState& state = seen.state;
  const std::vector<std::int64_t> numbers = unpack_numbers(group.broadcast(
      pack_numbers(std::vector<std::int64_t>{state.step, state.tokens, static_cast<std::int64_t>(state.seed),
                                             state.epoch, state.row, state.windows, state.eos}),
      0));
  state.step = numbers[0];
  state.tokens = numbers[1];
  state.seed = static_cast<std::uint64_t>(numbers[2]);
  state.epoch = numbers[3];
  state.row = numbers[4];
  state.windows = numbers[5];
  state.eos = numbers[6];
  state.version = group.broadcast(state.version, 0);
  state.resolved_yaml = group.broadcast(state.resolved_yaml, 0);
  seen.present = unpack_numbers(group.broadcast(pack_numbers(seen.present), 0));
  seen.checksums = unpack_numbers(group.broadcast(pack_numbers(seen.checksums), 0));
  seen.missing_prefixes = split_lines(group.broadcast(join_lines(seen.missing_prefixes), 0));
  seen.unused_prefixes = split_lines(group.broadcast(join_lines(seen.unused_prefixes), 0));
  return seen;
}

/// Throws Error for the first dataset whose sum over the ranks is not what the file says.
void check_sums(std::span<const NamedShard> shards, const Inspection& seen,
                std::span<const std::int64_t> sums) {
  for (std::size_t i = 0; i < shards.size(); ++i)
    if (seen.present[i] != 0 && sums[i] != seen.checksums[i])
      throw Error(format("the checksum of %s is %016llx and should be %016llx", shards[i].name.c_str(),
                         static_cast<unsigned long long>(sums[i]),
                         static_cast<unsigned long long>(seen.checksums[i])));
}

}  // namespace

std::uint64_t read_shard(const Hdf5Dataset& dataset, const NamedShard& shard, std::int64_t piece_elements) {
  if (elements_of(shard) == 0) return 0;
  return visit_float(dataset.dtype(),
                     [&](auto zero) { return read_boxes<decltype(zero)>(dataset, shard, piece_elements); });
}

ReadResult read_checkpoint(const std::string& path, std::span<const NamedShard> shards,
                           std::span<const std::string> optional_prefixes, const HostGroup& group) {
  Inspection seen;
  ReadResult result;
  result.damage = first_failure(group, [&] {
    if (group.rank() == 0) seen = inspect(path, shards, optional_prefixes);
  });
  if (!result.damage.empty()) return result;
  seen = share(std::move(seen), group);
  result.mismatch = seen.mismatch;
  if (!result.mismatch.empty()) return result;

  std::vector<std::int64_t> sums(shards.size(), 0);
  result.damage = first_failure(group, [&] {
    const Hdf5File file = Hdf5File::open(path);
    for (std::size_t i = 0; i < shards.size(); ++i)
      if (seen.present[i] != 0 && elements_of(shards[i]) > 0)
        sums[i] =
            static_cast<std::int64_t>(read_shard(file.dataset(shards[i].name), shards[i], kPieceElements));
  });
  if (!result.damage.empty()) return result;
  group.sum(std::span<std::int64_t>(sums));
  result.damage = first_failure(group, [&] { check_sums(shards, seen, sums); });
  result.state = std::move(seen.state);
  result.missing_prefixes = std::move(seen.missing_prefixes);
  result.unused_prefixes = std::move(seen.unused_prefixes);
  return result;
}

}  // namespace dew
