#include "train/data_feed.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/philox.h"
#include "base/timer.h"

namespace dew {
namespace {

RowSplit row_split(const RunSpec& spec, const MeshShape& shape, const MeshCoord& coord) {
  RowSplit split;
  split.batch = spec.data.batch;
  split.rank = shape.index_in(kRowAxes, coord);
  split.ranks = shape.size_of(kRowAxes);
  split.microbatches = microbatches_of(spec, shape);
  return split;
}

Pack pack_of(const RunSpec& spec) {
  return spec.data.documents.value_or(false) ? Pack::kDocuments : Pack::kWindows;
}

/// The key of all that a step draws: of the seed and the step alone.
std::uint64_t step_draws(const RunSpec& spec, std::int64_t step) {
  return stream_key(spec.run.seed, "step:" + std::to_string(step));
}

PositionRange position_range(const RunSpec& spec, const MeshShape& shape, const MeshCoord& coord) {
  const AxisSet sequence{Axis::kSequence};
  const std::int64_t length = spec.data.seq_len / shape.size_of(sequence);
  return {shape.index_in(sequence, coord) * length, length};
}

}  // namespace

double set_loss_scale(std::span<Microbatch> microbatches, const Mesh& mesh, const HostGroup& ranks) {
  // Ranks along tensor and stage hold the same targets: the first of them speaks for all.
  const bool counts = mesh.coord(Axis::kTensor) == 0 && mesh.coord(Axis::kStage) == 0;
  std::int64_t valid = 0;
  for (const Microbatch& microbatch : microbatches) valid += counts ? microbatch.batch.valid : 0;
  double seconds = 0;
  {
    ScopeTimer timer(seconds);
    ranks.sum({&valid, 1});
  }
  // All ranks know the sum.
  if (valid == 0)
    throw SharedError(
        "data: every target of the step is masked or follows an eos: it has no loss; accepted: larger "
        "batches, other "
        "masks, or data.pack: windows, which reads on across an eos");
  for (Microbatch& microbatch : microbatches) microbatch.loss_scale = 1.0 / static_cast<double>(valid);
  return seconds;
}

void ReadAhead::run(const std::stop_token& stop) {
  for (;;) {
    std::packaged_task<void()> task;
    {
      std::unique_lock lock(mutex_);
      if (!wanted_.wait(lock, stop, [this] { return task_.valid(); })) return;
      task = std::move(task_);
    }
    task();
  }
}

void ReadAhead::start(const BatchReader& reader, std::int64_t step, std::vector<Batch> batches) {
  drop();
  batches_ = std::move(batches);
  step_ = step;
  std::packaged_task<void()> task([this, &reader, step] {
    for (std::size_t m = 0; m < batches_.size(); ++m)
      reader.read_train(step, static_cast<std::int64_t>(m), batches_[m]);
  });
  read_ = task.get_future();
  {
    const std::lock_guard lock(mutex_);
    task_ = std::move(task);
  }
  wanted_.notify_one();
}

std::vector<Batch> ReadAhead::take(std::int64_t step) {
  if (step_ != step) {
    drop();
    return {};
  }
  step_ = -1;
  read_.wait();
  std::vector<Batch> batches = std::exchange(batches_, {});
  read_.get();
  return batches;
}

void ReadAhead::drop() {
  if (read_.valid()) read_.wait();
  read_ = {};
  step_ = -1;
  batches_.clear();
}

DataFeed::DataFeed(const TokenSource& source, const RunSpec& spec, const Mesh& mesh, const HostGroup& ranks)
    : source_(source), spec_(spec), mesh_(mesh), ranks_(ranks) {
  continue_at(0, 0);
}

void DataFeed::continue_at(std::int64_t step, std::int64_t row) {
  ahead_.drop();
  const MeshShape& shape = mesh_.shape();
  RowSplit split = row_split(spec_, shape, mesh_.coord());
  split.first_step = step;
  split.first_row = row;
  reader_.emplace(source_, spec_.data.seq_len, spec_.run.seed, split,
                  position_range(spec_, shape, mesh_.coord()), pack_of(spec_));
}

StepData DataFeed::step(std::int64_t step, const Placements& placements, Stream& stream) const {
  const auto room = [&] {
    std::vector<Batch> batches;
    for (std::int64_t m = 0; m < microbatches_of(spec_, mesh_.shape()); ++m)
      batches.push_back(reader_->room(stream));
    return batches;
  };
  StepData data;
  {
    ScopeTimer timer(data.read_seconds);
    KernelScope scope(stream, KernelKind::kDataWait, 0, 0);
    std::vector<Batch> batches = ahead_.take(step);
    if (batches.empty()) {
      ahead_.start(*reader_, step, room());
      batches = ahead_.take(step);
    }
    for (Batch& batch : batches)
      data.microbatches.push_back({std::move(batch), 1, placements, step_draws(spec_, step)});
  }
  data.wait_seconds = set_loss_scale(data.microbatches, mesh_, ranks_);
  ahead_.start(*reader_, step + 1, room());
  return data;
}

Microbatch DataFeed::validation(std::int64_t index, const Placements& placements, Stream& stream) const {
  return {reader_->validation(index, stream), 1, placements, {}};
}

std::int64_t DataFeed::validation_batches() const {
  const std::int64_t all = reader_->validation_batches();
  if (!spec_.eval.batches || *spec_.eval.batches > all) return all;
  return std::min(all, *spec_.eval.batches * microbatches_of(spec_, mesh_.shape()));
}

std::vector<Microbatch> dry_microbatches(const RunSpec& spec, const MeshShape& mesh, const MeshCoord& coord,
                                         const Placements& placements, Stream& stream) {
  const std::int64_t count = microbatches_of(spec, mesh);
  const std::int64_t rows = spec.data.batch / (mesh.size_of(kRowAxes) * count);
  const PositionRange part = position_range(spec, mesh, coord);
  std::vector<Microbatch> microbatches;
  for (std::int64_t m = 0; m < count; ++m) {
    Batch batch = make_room(rows, part, spec.data.seq_len, pack_of(spec), stream);
    microbatches.push_back({std::move(batch), 1, placements, step_draws(spec, 0)});
  }
  return microbatches;
}

}  // namespace dew
