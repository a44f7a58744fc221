// Reading one checkpoint file into shards of any layout.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/host_group.h"
#include "io/checkpoint.h"
#include "io/hdf5_file.h"

namespace dew {

/// Reads the boxes of a shard, at most `piece_elements` at a time, converting to the dtype of `local`.
/// Returns this rank's part of the dataset's checksum (0 where it owns nothing), over the bits in the file.
/// Throws Error.
std::uint64_t read_shard(const Hdf5Dataset& dataset, const NamedShard& shard, std::int64_t piece_elements);

/// What came of one file, the same on every rank.
struct ReadResult {
  std::string damage;    ///< why the file is not whole; else
  std::string mismatch;  ///< why a whole file does not fit the shards; else
  RunState state;
  std::vector<std::string> missing_prefixes, unused_prefixes;  ///< as in Restored
};

/// Rank 0 compares the file's tree with the shards, then every rank reads its boxes and the checksums are
/// summed. Shards under an optional prefix that the file lacks stay as they are. Collective over `group`.
ReadResult read_checkpoint(const std::string& path, std::span<const NamedShard> shards,
                           std::span<const std::string> optional_prefixes, const HostGroup& group);

}  // namespace dew
