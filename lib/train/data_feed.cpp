#include "train/data_feed.h"

#include <algorithm>

namespace dew {
namespace {

RowSplit row_split(const RunSpec& spec, const MeshShape& shape, const MeshCoord& coord) {
  return {spec.data.batch, shape.index_in(kRowAxes, coord), shape.size_of(kRowAxes), spec.accumulate};
}

PositionRange position_range(const RunSpec& spec, const MeshShape& shape, const MeshCoord& coord) {
  const AxisSet sequence{Axis::kSequence};
  const std::int64_t length = spec.data.seq_len / shape.size_of(sequence);
  return {shape.index_in(sequence, coord) * length, length};
}

}  // namespace

DataFeed::DataFeed(const TokenSource& source, const RunSpec& spec, const Mesh& mesh, const HostGroup& ranks)
    : spec_(spec),
      ranks_(ranks),
      reader_(source, spec.data.seq_len, spec.run.seed, row_split(spec, mesh.shape(), mesh.coord()),
              position_range(spec, mesh.shape(), mesh.coord())) {}

std::vector<Microbatch> DataFeed::step(std::int64_t step, const Placements& placements,
                                       Stream& stream) const {
  std::vector<Microbatch> microbatches;
  std::int64_t valid = 0;
  {
    KernelScope scope(stream, KernelKind::kDataWait, 0, 0);
    for (std::int64_t m = 0; m < spec_.accumulate; ++m) {
      microbatches.push_back({reader_.train(step, m, stream), 1, placements});
      valid += microbatches.back().batch.valid;
    }
  }
  ranks_.sum({&valid, 1});
  DEW_CHECK(valid > 0, step, "no target of the step counts");
  for (Microbatch& microbatch : microbatches) microbatch.loss_scale = 1.0 / static_cast<double>(valid);
  return microbatches;
}

Microbatch DataFeed::validation(std::int64_t index, const Placements& placements, Stream& stream) const {
  return {reader_.validation(index, stream), 1, placements};
}

std::int64_t DataFeed::validation_batches() const {
  const std::int64_t all = reader_.validation_batches();
  return std::min(all, spec_.eval.batches.value_or(all));
}

std::vector<Microbatch> dry_microbatches(const RunSpec& spec, const MeshShape& mesh,
                                         const Placements& placements, Stream& stream) {
  const std::int64_t rows = spec.data.batch / (mesh.size_of(kRowAxes) * spec.accumulate);
  const std::int64_t length = spec.data.seq_len / mesh[Axis::kSequence];
  std::vector<Microbatch> microbatches;
  for (std::int64_t m = 0; m < spec.accumulate; ++m) {
    Batch batch;
    batch.tokens = Tensor::empty({rows, length}, DType::kI32, stream, Owner::kBuffers);
    batch.targets = Tensor::empty({rows, length}, DType::kI32, stream, Owner::kBuffers);
    batch.valid = rows * length;
    microbatches.push_back({std::move(batch), 1, placements});
  }
  return microbatches;
}

}  // namespace dew
