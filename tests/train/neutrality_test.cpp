// What changes time or memory alone must leave every bit as it is.
#include <gtest/gtest.h>

#include "support/mpi_world.h"
#include "tensor/copy.h"
#include "train/tiny_run.h"

namespace dew {
namespace {

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
  for (const auto& layout : layouts()) {
    const Trained plain = train(layout);
    for (const char* recompute :
         {"full", "[attention]", "[qkv]", "[mlp]", "[mlp_hidden]", "[attention, qkv, mlp, mlp_hidden]"}) {
      const Trained dropped = train(join(layout, {std::string("recompute=") + recompute}));
      EXPECT_EQ(dropped.losses, plain.losses) << recompute;
      EXPECT_EQ(dropped.bits, plain.bits) << recompute;
      EXPECT_LT(dropped.peak, plain.peak) << recompute;
    }
  }
}

/// Gradients of one step under a program and a prefetch choice, with its own executor on the run's store.
std::vector<double> gradient_bits(const std::vector<std::string>& overrides, bool prefetch,
                                  bool split_backward) {
  TinyRun run(overrides);
  const int microbatches = static_cast<int>(run.setup().spec.accumulate);
  StageExecutor executor(run.setup().model, run.store(), run.setup().remat, prefetch);
  const auto batches = run.feed().step(0, run.engine().token_placements(), run.stream()).microbatches;
  const Program program =
      split_backward ? split_backward_program(microbatches, false) : sequential_program(microbatches, false);
  executor.run(program, batches);
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

TEST(Evaluation, LeavesTheStateAndTheNextStepAlone) {
  for (const auto& layout : layouts()) {
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
  for (const auto& layout : layouts()) {
    TinyRun run(join(layout, {"accumulate=2"}));
    constexpr std::int64_t kWarmUp = 10;
    for (std::int64_t step = 1; step <= kWarmUp; ++step) run.step(step);
    const MemoryUse warm = run.allocator().use();
    for (std::int64_t step = kWarmUp + 1; step <= 4 * kWarmUp; ++step) run.step(step);
    EXPECT_EQ(run.allocator().use().total_live, warm.total_live);
    // Which messages are in flight together follows from the arrivals, so a late step may hold one buffer
    // more.
    EXPECT_LE(run.allocator().use().reserved, warm.reserved + warm.reserved / 20);
  }
}

}  // namespace
}  // namespace dew
