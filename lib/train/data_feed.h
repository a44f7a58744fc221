// From a step number to the microbatches of this rank, with the one divisor of the step.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/host_group.h"
#include "comm/mesh.h"
#include "io/batch.h"
#include "io/run_spec.h"
#include "model/block.h"

namespace dew {

class DataFeed {
 public:
  /// The part of the global batch that belongs to `mesh`'s coordinate. `ranks` holds the ranks of that mesh.
  DataFeed(const TokenSource& source, const RunSpec& spec, const Mesh& mesh, const HostGroup& ranks);

  /// The microbatches of a step (counted from 0): the divisor is the count of valid targets of the whole
  /// global batch, summed over ranks before anything runs. Collective over the mesh's ranks.
  std::vector<Microbatch> step(std::int64_t step, const Placements& placements, Stream& stream) const;
  /// One validation batch; its loss_scale is 1, so that a loss is a sum. `valid` counts this rank's targets.
  Microbatch validation(std::int64_t index, const Placements& placements, Stream& stream) const;
  /// Batches of an evaluation: eval.batches, at most the whole split; 0 where there is no validation data.
  std::int64_t validation_batches() const;

  const BatchReader& reader() const { return reader_; }

 private:
  const RunSpec& spec_;
  const HostGroup& ranks_;
  BatchReader reader_;
};

/// Batches of the right shapes without memory, for a dry run on a meta stream.
std::vector<Microbatch> dry_microbatches(const RunSpec& spec, const MeshShape& mesh,
                                         const Placements& placements, Stream& stream);

}  // namespace dew
