// What changes time or memory alone must leave every bit as it is.
#include <gtest/gtest.h>

#include "support/mpi_world.h"
#include "tensor/copy.h"
#include "train/lowering.h"
#include "train/schedules.h"
#include "train/tiny_run.h"

namespace dew {
namespace {

using testing::all_layouts;
using testing::axis_layouts;
using testing::join;
using testing::layouts;
using testing::TinyRun;

constexpr std::int64_t kSteps = 3;

struct Trained {
  std::vector<double> losses, bits;
  std::int64_t peak = 0;
};

Trained train(const std::vector<std::string>& overrides) {
  TinyRun run(overrides);
  Trained result;
  for (std::int64_t step = 1; step <= kSteps; ++step) result.losses.push_back(run.step(step).loss);
  result.bits = run.bits();
  result.peak = run.allocator().use().peak[static_cast<std::size_t>(Owner::kActivations)];
  return result;
}

TEST(Recomputation, ChangesNoBitAndNeedsLessMemory) {
  for (const auto& layout : axis_layouts()) {
    const Trained plain = train(layout);
    for (const char* recompute :
         {"full", "[attention]", "[qkv]", "[mlp]", "[mlp_hidden]", "[attention, qkv, mlp, mlp_hidden]"}) {
      const Trained dropped = train(join(layout, {std::string("recompute=") + recompute}));
      EXPECT_EQ(dropped.losses, plain.losses) << recompute;
      EXPECT_EQ(dropped.bits, plain.bits) << recompute;
      // A stage that holds the embedding or the head alone has nothing to drop.
      if (testing::is_staged(layout))
        EXPECT_LE(dropped.peak, plain.peak) << recompute;
      else
        EXPECT_LT(dropped.peak, plain.peak) << recompute;
    }
  }
}

/// Gradients of one step under a program and a prefetch choice, with its own executor on the run's store.
std::vector<double> gradient_bits(const std::vector<std::string>& overrides, bool prefetch, bool splits) {
  TinyRun run(overrides);
  const RunSetup& setup = run.setup();
  const PipelineShape shape{1, static_cast<int>(setup.spec.accumulate), 1};
  StageExecutor executor(
      {setup.model, setup.cut, setup.remat, setup.sequence,
       survey_chain(setup.model, setup.rules, setup.spec, setup.sequence, setup.mesh, run.mesh().coord())
           .blocks},
      run.store(), prefetch);
  const auto batches = run.feed().step(0, run.engine().token_placements(), run.stream()).microbatches;
  const std::vector<Program> compute{splits ? split_backward(shape, 0) : sequential(shape, 0)};
  executor.run(lower(compute, shape, false).front(), batches);
  run.store().finish();
  return run.bits();
}

TEST(Prefetch, ChangesNoBit) {
  for (const auto& layout : layouts()) {
    const auto options = join(layout, {"accumulate=2"});
    EXPECT_EQ(gradient_bits(options, true, false), gradient_bits(options, false, false));
  }
}

TEST(DeferredWeightGradients, ChangeNoBit) {
  for (const auto& layout : layouts()) {
    for (const char* recompute : {"none", "full", "[mlp]"}) {
      const auto options = join(layout, {"accumulate=2", std::string("recompute=") + recompute});
      EXPECT_EQ(gradient_bits(options, true, true), gradient_bits(options, true, false)) << recompute;
    }
  }
}

TEST(Schedules, ChangeNoBit) {
  if (testing::world().size() == 1) return;  // one stage has one schedule
  const auto stages = testing::mesh_of({{"stage", testing::world().size()}});
  const std::vector<std::string> model{"model.layers=8", "model.tied=true", "pipeline.microbatches=4"};
  for (const char* other : {"recompute=none", "recompute=full",
                            // What several microbatches wrote must not be summed in the narrower format.
                            "precision={compute: f32, master: f32, reduce: f64}"}) {
    const auto options = join(join(stages, model), {other});
    const Trained plain = train(join(options, {"pipeline.schedule=1f1b"}));
    for (const char* schedule : {"gpipe", "zero_bubble"}) {
      const Trained another = train(join(options, {std::string("pipeline.schedule=") + schedule}));
      EXPECT_EQ(another.losses, plain.losses) << schedule;
      EXPECT_EQ(another.bits, plain.bits) << schedule;
    }
  }
}

TEST(Evaluation, LeavesTheStateAndTheNextStepAlone) {
  for (const auto& layout : all_layouts()) {
    TinyRun plain(layout), evaluated(layout);
    plain.step(1);
    evaluated.step(1);
    const auto microbatch =
        evaluated.feed().validation(0, evaluated.engine().token_placements(), evaluated.stream());
    evaluated.engine().evaluate(microbatch);
    plain.step(2);
    evaluated.step(2);
    EXPECT_EQ(plain.bits(), evaluated.bits());
  }
}

TEST(Memory, IsTheSameAfterEveryStep) {
  for (const auto& layout : axis_layouts()) {
    TinyRun run(join(layout, {"accumulate=2"}));
    constexpr std::int64_t kWarmUp = 10;
    for (std::int64_t step = 1; step <= kWarmUp; ++step) run.step(step);
    const MemoryUse warm = run.allocator().use();
    for (std::int64_t step = kWarmUp + 1; step <= 4 * kWarmUp; ++step) run.step(step);
    EXPECT_EQ(run.allocator().use().total_live, warm.total_live);
    // Which messages are in flight together follows from the arrivals, so a late step may hold one buffer
    // more; between stages a few sends.
    EXPECT_LE(run.allocator().use().reserved,
              warm.reserved + warm.reserved / (testing::is_staged(layout) ? 4 : 20));
  }
}

}  // namespace
}  // namespace dew
