#include "io/checkpoint_writer.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>

#include "base/philox.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "io/box_runs.h"
#include "io/checkpoint_format.h"
#include "io/checksum.h"
#include "io/durable_file.h"
#include "io/hdf5_file.h"

namespace dew {
namespace {

bool is_leftover(const std::string& name) {
  return name.starts_with(".step_") && name.ends_with(".h5.partial");
}

void remove_leftovers(const std::string& directory) {
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (is_leftover(entry.path().filename().string())) std::filesystem::remove(entry.path());
}

std::uint64_t fingerprint(std::span<const NamedShard> shards) {
  std::uint64_t sum = shards.size();
  for (const NamedShard& shard : shards) sum = mix64(sum + stream_key(0, shard.name + shard.global.str()));
  return sum;
}

}  // namespace

CheckpointWriter::CheckpointWriter(const std::string& directory, std::span<const NamedShard> shards,
                                   const RunState& state, const HostGroup& group)
    : directory_(directory),
      shards_(shards),
      state_(state),
      group_(group),
      partial_(directory + "/." + checkpoint_name(state.step) + ".partial") {}

void CheckpointWriter::step(const std::function<void()>& work) {
  const std::string failure = first_failure(group_, work);
  if (failure.empty()) return;
  file_.reset();
  if (group_.rank() == 0) ::unlink(partial_.c_str());
  group_.barrier();  // gone when any rank goes on
  throw SharedError("checkpoint " + directory_ + "/" + checkpoint_name(state_.step) +
                    " was not saved: " + failure);
}

void CheckpointWriter::check_local_shards() {
  for (const NamedShard& shard : shards_) check_shard(shard);
}

void CheckpointWriter::agree_on_datasets() {
  const auto mine = static_cast<std::int64_t>(fingerprint(shards_));
  std::vector<std::int64_t> most{mine}, least{mine};
  group_.max(most);
  group_.min(least);
  step([&] {
    if (most != least) throw Error("the ranks list different datasets, shapes or orders");
  });
  // A rank without elements has no say in the dtype: 0 there, and the largest and smallest of the others must
  // agree.
  std::vector<std::int64_t> highest, lowest;
  for (const NamedShard& shard : shards_) {
    const std::int64_t size =
        elements_of(shard) == 0 ? 0 : static_cast<std::int64_t>(size_of(shard.local.dtype()));
    highest.push_back(size);
    lowest.push_back(size == 0 ? std::numeric_limits<std::int64_t>::max() : size);
  }
  group_.max(highest);
  group_.min(lowest);
  step([&] {
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      if (highest[i] != 0 && highest[i] != lowest[i])
        throw Error(shards_[i].name + " is f32 here and f64 there");
      dtypes_.push_back(highest[i] == 8 ? DType::kF64 : DType::kF32);
      bytes_ += shards_[i].global.numel() * static_cast<std::int64_t>(size_of(dtypes_[i]));
    }
  });
}

void CheckpointWriter::sum_checksums() {
  const std::size_t n = shards_.size();
  std::vector<std::int64_t> sums(2 * n, 0);  // a checksum and a count of elements for each dataset
  for (std::size_t i = 0; i < n; ++i) {
    if (!shards_[i].owned) continue;
    sums[i] = static_cast<std::int64_t>(hash_shard(shards_[i]));
    sums[n + i] = elements_of(shards_[i]);
  }
  group_.sum(std::span<std::int64_t>(sums));
  step([&] {
    for (std::size_t i = 0; i < n; ++i) {
      if (sums[n + i] != shards_[i].global.numel())
        throw Error(format("%s has %lld elements and the ranks own %lld", shards_[i].name.c_str(),
                           static_cast<long long>(shards_[i].global.numel()),
                           static_cast<long long>(sums[n + i])));
      checksums_.push_back(static_cast<std::uint64_t>(sums[i]));
    }
  });
}

std::int64_t CheckpointWriter::most_metadata_bytes() const {
  // An upper bound. Measured, names and groups included: 2 KiB a dataset among 7, 0.6 KiB among 12,000.
  constexpr std::int64_t kFile = 64 * 1024, kDataset = 8 * 1024;
  std::int64_t bytes = kFile + static_cast<std::int64_t>(state_.resolved_yaml.size() + state_.version.size());
  for (const NamedShard& shard : shards_)
    bytes += kDataset + 4 * static_cast<std::int64_t>(shard.name.size());
  return bytes;
}

std::vector<std::int64_t> CheckpointWriter::make_file() const {
  std::filesystem::create_directories(directory_);
  remove_leftovers(directory_);
  require_space(directory_, bytes_ + most_metadata_bytes());
  // In memory, since HDF5 faults at the end of the process when a write was refused; datasets are holes
  // there.
  const PosixFile memory = PosixFile::in_memory();
  std::vector<std::int64_t> offsets;
  Hdf5File file = Hdf5File::create(memory.path());
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    offsets.push_back(file.make_dataset(shards_[i].name, shards_[i].global, dtypes_[i]));
    file.write_attribute(shards_[i].name, kChecksumAttribute, checksums_[i]);
  }
  write_run_state(file, state_);
  file.close();

  PosixFile target = PosixFile::create(partial_);
  target.reserve(memory.bytes());
  memory.copy_written_to(target);
  target.close();
  return offsets;
}

void CheckpointWriter::prepare() {
  step([&] { check_local_shards(); });
  agree_on_datasets();
  sum_checksums();
  step([&] {
    if (group_.rank() == 0) offsets_ = make_file();
  });
  offsets_ = unpack_numbers(group_.broadcast(pack_numbers(offsets_), 0));
  step([&] { file_ = PosixFile::open_to_write(partial_); });
}

void CheckpointWriter::write_shard(const NamedShard& shard, std::int64_t offset) const {
  const auto element = static_cast<std::int64_t>(size_of(shard.local.dtype()));
  const char* from = static_cast<const char*>(shard.local.raw());
  for (const Slab& box : shard.boxes) {
    const BoxRuns runs(box);
    runs.for_each([&](std::int64_t begin) {
      file_->write_at(offset + begin * element, from, runs.length() * element);
      from += runs.length() * element;
    });
  }
}

void CheckpointWriter::write() {
  step([&] {
    for (std::size_t i = 0; i < shards_.size(); ++i)
      if (shards_[i].owned && elements_of(shards_[i]) > 0) write_shard(shards_[i], offsets_[i]);
  });
}

void CheckpointWriter::sync() {
  // Every rank: on a shared file system a host can make durable only what it wrote itself.
  step([&] {
    file_->sync();
    file_->close();
  });
  file_.reset();
}

std::string CheckpointWriter::publish() {
  std::string path = directory_ + "/" + checkpoint_name(state_.step);
  step([&] {
    if (group_.rank() == 0) publish_file(partial_, path);
  });
  return path;
}

}  // namespace dew
