// Named slabs of global tensors <-> one logical HDF5 file that appears under its name only when whole and
// durable.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "comm/host_group.h"
#include "comm/layout.h"
#include "tensor/tensor.h"

namespace dew {

/// What one rank holds of one dataset: `local` lists the elements of the boxes in order.
struct NamedShard {
  std::string name;  ///< "/params/layers.0.attention.wq"
  Shape global;
  std::vector<Slab> boxes;  ///< rectangles of the global tensor; may be empty
  Tensor local;             ///< f32 or f64, one dim
  bool owned = true;        ///< written and hashed by this rank; others hold a copy of the same elements
};

/// What a checkpoint holds beside tensors.
struct RunState {
  std::int64_t step = 0;    ///< steps done
  std::int64_t tokens = 0;  ///< training tokens seen
  std::uint64_t seed = 0;
  std::int64_t epoch = 0, row = 0;  ///< data position: the next row to read
  std::int64_t windows = 0;         ///< training windows an epoch; 0 in a file that does not tell
  std::int64_t eos = -1;            ///< of the documents that rows were split into; -1: they were not
  std::string resolved_yaml;
  std::string version;
};

/// Hash of one element keyed by its global index; a dataset's checksum is the sum of them modulo 2^64, so
/// that shards combine in any order. `bits` is the element's bit pattern, zero-extended.
std::uint64_t element_hash(std::uint64_t global_index, std::uint64_t bits);

/// "step_00000100.h5".
std::string checkpoint_name(std::int64_t step);

/// Writes DIRECTORY/step_XXXXXXXX.h5 in parallel: a temporary name, every rank its owned boxes with
/// independent transfers, checksums, fsync of the file, rename, fsync of the directory; then removes all but
/// the newest `keep` whole files and older temporary ones. Collective over `group`. On any failure (no space,
/// no permission) every rank throws SharedError with the system's reason, the temporary file is gone and
/// older checkpoints are untouched.
void save_checkpoint(const std::string& directory, std::span<const NamedShard> shards, const RunState& state,
                     std::int64_t keep, const HostGroup& group);

/// The steps of the files named step_*.h5 in a directory, newest first; empty without one.
std::vector<std::int64_t> checkpoint_steps(const std::string& directory);

/// What a restore found.
struct Restored {
  RunState state;
  std::string file;
  std::vector<std::string> missing_prefixes;  ///< optional ones that shards ask for and the file lacks
  std::vector<std::string> unused_prefixes;   ///< optional ones that the file holds and no shard asks for
};

/// Fills the shards from the newest file that is whole, whatever mesh wrote it: reads every box, checks each
/// dataset's checksum over the group. A damaged file costs one log line with the reason and its name (it gets
/// the ending .damaged), and the next older one is tried. Returns nullopt when there is no file at all;
/// throws SharedError when there are files and none is whole, or when a whole file lacks a dataset or has
/// another shape (naming dataset and shapes). Shards named in `optional_prefixes` (such as "/ema/") may be
/// missing together; they stay as they are and their prefixes are told in `missing_prefixes`. An optional
/// prefix without shards is no error, and told in `unused_prefixes` when the file holds datasets under it.
/// Collective over `group`.
std::optional<Restored> restore_newest(const std::string& directory, std::span<const NamedShard> shards,
                                       std::span<const std::string> optional_prefixes, const HostGroup& group,
                                       const Log& log);

}  // namespace dew
