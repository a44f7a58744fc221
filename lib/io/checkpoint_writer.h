// One save of a checkpoint in its four steps. The metadata are made by HDF5 in the memory of rank 0; the
// elements go from every rank straight to their places in the file by plain system calls.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/host_group.h"
#include "io/checkpoint.h"
#include "io/posix_file.h"

namespace dew {

class CheckpointWriter {
 public:
  /// `directory`, `shards`, `state` and `group` must outlive the writer. Every rank lists the same datasets
  /// in the same order. Collective, as is each step below, to be called in order; when a step fails anywhere
  /// every rank throws SharedError with the reason of the lowest rank that failed, and the temporary file is
  /// gone.
  CheckpointWriter(const std::string& directory, std::span<const NamedShard> shards, const RunState& state,
                   const HostGroup& group);

  /// Sums the checksums, checks that every element has one owner and that there is space, makes the file with
  /// its metadata and takes its space.
  void prepare();
  /// Writes the owned boxes of this rank.
  void write();
  /// Makes what this rank wrote durable, and closes.
  void sync();
  /// Gives the file its name. Returns its path.
  std::string publish();

  std::int64_t bytes() const { return bytes_; }  ///< of the elements of all datasets

 private:
  void step(const std::function<void()>& work);
  void check_local_shards();
  void agree_on_datasets();
  void sum_checksums();
  std::int64_t most_metadata_bytes() const;
  std::vector<std::int64_t> make_file() const;
  void write_shard(const NamedShard& shard, std::int64_t offset) const;

  const std::string& directory_;
  std::span<const NamedShard> shards_;
  const RunState& state_;
  const HostGroup& group_;
  std::string partial_;
  std::vector<DType> dtypes_;  ///< of each dataset, agreed by the ranks
  std::vector<std::uint64_t> checksums_;
  std::vector<std::int64_t> offsets_;  ///< where each dataset lies in the file, in bytes
  std::int64_t bytes_ = 0;
  std::optional<PosixFile> file_;
};

}  // namespace dew
