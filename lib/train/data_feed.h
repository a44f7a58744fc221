// From a step number to the microbatches of this rank, with the one divisor of the step.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <future>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "comm/host_group.h"
#include "comm/mesh.h"
#include "io/batch.h"
#include "io/run_spec.h"
#include "model/block.h"

namespace dew {

/// What a step reads.
struct StepData {
  std::vector<Microbatch> microbatches;
  double read_seconds = 0;  ///< waiting for tokens to be read
  double wait_seconds = 0;  ///< waiting for other ranks in the count of targets
};

/// Gives every microbatch of a step the one divisor: 1 / (valid targets of the whole global batch). The count
/// is summed over the ranks that split the batch; ranks that hold the same tokens (tensor, stage) count once.
/// Collective over `ranks`, all ranks of `mesh`. Throws SharedError when no target counts. Returns the
/// seconds spent waiting.
double set_loss_scale(std::span<Microbatch> microbatches, const Mesh& mesh, const HostGroup& ranks);

/// Reads the batches of one step ahead, on a thread of its own, while the step before it computes.
class ReadAhead {
 public:
  ReadAhead() : thread_([this](const std::stop_token& stop) { run(stop); }) {}

  /// Starts reading a step into `batches`, which nobody else may touch until `take` or `drop`. The reader
  /// must outlive that.
  void start(const BatchReader& reader, std::int64_t step, std::vector<Batch> batches);
  /// The batches of `step` once they are read, or nothing when another step, or none, was asked for. Throws
  /// what reading threw.
  std::vector<Batch> take(std::int64_t step);
  /// Waits for what is being read and forgets it.
  void drop();

 private:
  void run(const std::stop_token& stop);

  std::int64_t step_ = -1;
  std::vector<Batch> batches_;  ///< the thread's until `read_` is ready
  std::future<void> read_;
  std::mutex mutex_;
  std::condition_variable_any wanted_;
  std::packaged_task<void()> task_;  ///< what the thread does next
  std::jthread thread_;              // the last member: it ends before the others
};

class DataFeed {
 public:
  /// The part of the global batch that belongs to `mesh`'s coordinate. `ranks` holds the ranks of that mesh.
  DataFeed(const TokenSource& source, const RunSpec& spec, const Mesh& mesh, const HostGroup& ranks);

  /// From `step` (counted from 0) on, reads rows from the global row `row` on: a run that continues another
  /// one, whose batches may have had another size.
  void continue_at(std::int64_t step, std::int64_t row);

  /// The microbatches of a step (counted from 0), with the divisor set before anything runs; the next step is
  /// read meanwhile. Collective.
  StepData step(std::int64_t step, const Placements& placements, Stream& stream) const;
  /// One validation batch, of a training microbatch's size; its loss_scale is 1, so that a loss is a sum.
  /// `valid` counts this rank's targets.
  Microbatch validation(std::int64_t index, const Placements& placements, Stream& stream) const;
  /// Calls of `validation` in an evaluation: eval.batches global batches, at most the whole split; 0 where
  /// there is no validation data.
  std::int64_t validation_batches() const;

  const BatchReader& reader() const { return *reader_; }

 private:
  const TokenSource& source_;
  const RunSpec& spec_;
  const Mesh& mesh_;
  const HostGroup& ranks_;
  std::optional<BatchReader> reader_;
  mutable ReadAhead ahead_;  // after the reader: it stops reading first
};

/// Batches of the right shapes without memory, for a dry run on a meta stream as the rank at `coord`.
std::vector<Microbatch> dry_microbatches(const RunSpec& spec, const MeshShape& mesh, const MeshCoord& coord,
                                         const Placements& placements, Stream& stream);

}  // namespace dew
