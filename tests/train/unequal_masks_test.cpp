// Ranks and microbatches whose numbers of valid targets differ widely: the loss is one sum over one divisor.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "support/mpi_world.h"
#include "train/gathered_state.h"
#include "train/tiny_run.h"

namespace dew {
namespace {

using testing::TinyRun;
using testing::world;
using Leaves = std::vector<std::vector<double>>;

constexpr double kBound = 1e-12;  // relative; sums of a few hundred terms in another order

// Row r of the global batch keeps its first r + 1 targets of 24, row 0 none: ranks hold from few to nearly
// all.
bool counts(std::int64_t global_row, std::int64_t position) {
  return global_row > 0 && position <= global_row;
}

struct Result {
  double loss = 0;
  Leaves gradients;
};

Result masked_step(const std::vector<std::string>& overrides, const HostGroup& ranks) {
  TinyRun run(overrides, ranks);
  const auto& spec = run.setup().spec;
  auto batches = run.feed().step(0, run.engine().token_placements(), run.stream()).microbatches;
  const MeshShape& shape = run.mesh().shape();
  const std::int64_t row_ranks = shape.size_of(kRowAxes),
                     row_rank = shape.index_in(kRowAxes, run.mesh().coord());
  const std::int64_t microbatches = microbatches_of(spec, shape),
                     rows = spec.data.batch / (row_ranks * microbatches);
  const std::int64_t length = spec.data.seq_len / shape[Axis::kSequence];
  for (std::size_t m = 0; m < batches.size(); ++m) {
    std::int32_t* targets = batches[m].batch.targets.data<std::int32_t>();
    for (std::int64_t i = 0; i < rows * length; ++i) {
      const std::int64_t row =
          row_rank * (spec.data.batch / row_ranks) + static_cast<std::int64_t>(m) * rows + i / length;
      if (counts(row, batches[m].batch.first_position + i % length)) continue;
      targets[i] = -1;
      --batches[m].batch.valid;
    }
  }
  set_loss_scale(batches, run.mesh(), ranks);
  std::vector<double> loss{run.engine().gradients(batches)};
  ranks.sum(std::span<double>(loss));
  return {loss[0], gather_whole(run.store(), ranks, [](const ShardedParameter& p) { return p.gradient; })};
}

TEST(UnequalMasks, GiveTheLossAndGradientOfOneRank) {
  const HostGroup alone = HostGroup::alone();
  const Result one = masked_step({}, alone);
  const std::vector<std::vector<std::string>> layouts{
      {"mesh.replica=1", "mesh.sequence=4"},
      {"mesh.replica=1", "mesh.tensor=4"},
      {"mesh.replica=1", "mesh.stage=4", "pipeline.microbatches=3"},
      {"mesh.replica=2", "mesh.sequence=2", "accumulate=2"},
      {"mesh.replica=1", "mesh.stage=2", "mesh.expert=2"},
      {"mesh.replica=1", "mesh.tensor=2", "mesh.sequence=2"},
      {"mesh.replica=4"},
      {"mesh.replica=1", "mesh.fsdp=4"},
      {"mesh.replica=2", "mesh.fsdp=2", "accumulate=3"},
      {"mesh.replica=1", "mesh.fsdp=4", "accumulate=2", "layout.reduce=microbatch"}};
  for (const auto& layout : layouts) {
    const Result mesh = masked_step(layout, world());
    EXPECT_NEAR(mesh.loss, one.loss, kBound * one.loss);
    double all = 0;
    for (const auto& leaf : one.gradients)
      all += std::inner_product(leaf.begin(), leaf.end(), leaf.begin(), 0.0);
    for (std::size_t i = 0; i < one.gradients.size(); ++i)
      for (std::size_t j = 0; j < one.gradients[i].size(); ++j)
        ASSERT_NEAR(mesh.gradients[i][j], one.gradients[i][j], kBound * std::sqrt(all)) << i << ' ' << j;
  }
}

TEST(UnequalMasks, AStepWithoutAnyTargetIsRefusedOnAllRanksAlike) {
  TinyRun run({"mesh.replica=2", "mesh.tensor=2"});
  auto batches = run.feed().step(0, run.engine().token_placements(), run.stream()).microbatches;
  for (Microbatch& microbatch : batches) microbatch.batch.valid = 0;
  EXPECT_THROW(set_loss_scale(batches, run.mesh(), world()), SharedError);
}

}  // namespace
}  // namespace dew
