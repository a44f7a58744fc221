// What saving and restoring share: the names inside of a checkpoint and the arithmetic of its shards.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "io/hdf5_file.h"

namespace dew {

inline constexpr std::int64_t kCheckpointFormat = 1;
inline constexpr const char* kChecksumAttribute = "checksum";

/// Makes /run and /data.
void write_run_state(Hdf5File& file, const RunState& state);
/// Throws Error where /run or /data is incomplete.
RunState read_run_state(const Hdf5File& file);
std::int64_t read_format(const Hdf5File& file);

/// Elements of all boxes.
std::int64_t elements_of(const NamedShard& shard);
/// Checks that the boxes lie in the tensor and that `local` has one host element for each of theirs. Throws
/// Error.
void check_shard(const NamedShard& shard);
/// This rank's part of a dataset's checksum.
std::uint64_t hash_shard(const NamedShard& shard);

/// Numbers as bytes, for HostGroup::broadcast between equal machines.
std::string pack_numbers(std::span<const std::int64_t> numbers);
std::vector<std::int64_t> unpack_numbers(const std::string& bytes);

}  // namespace dew
