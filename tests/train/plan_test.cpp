#include "train/plan.h"

#include <gtest/gtest.h>

#include "support/mpi_world.h"
#include "train/tiny_run.h"

namespace dew {
namespace {

using testing::all_layouts;
using testing::join;
using testing::TinyRun;

std::size_t at(Owner owner) {
  return static_cast<std::size_t>(owner);
}

TEST(Plan, HoldsTheBytesOfARealStepByOwner) {
  for (const auto& layout : all_layouts()) {
    for (const char* recompute : {"none", "full"}) {
      TinyRun run(join(layout, {"accumulate=2", "ema=0.9", std::string("recompute=") + recompute}));
      run.step(1);
      run.engine().evaluate(run.feed().validation(0, run.engine().token_placements(), run.stream()));
      const MemoryUse &real = run.allocator().use(), &planned = run.setup().plan.memory;
      // The plan speaks of the rank that holds the most; what a stage sends may stay a little longer.
      constexpr double kSendsInFlight = 1.05;
      if (testing::is_staged(layout)) {
        EXPECT_GE(static_cast<double>(planned.total_peak) * kSendsInFlight,
                  static_cast<double>(real.total_peak));
        continue;
      }
      for (Owner owner :
           {Owner::kWeights, Owner::kGradients, Owner::kOptimizer, Owner::kEma, Owner::kGathered})
        EXPECT_GE(planned.peak[at(owner)], real.peak[at(owner)]) << name_of(owner) << ' ' << layout.back();
      // The plan speaks of the rank that holds the most, and of messages that stay in flight until they are
      // waited for; real ones may end sooner. On so small a model the buffers of one block are 7% of all.
      std::int64_t most = real.total_peak;
      testing::world().max({&most, 1});
      EXPECT_GE(planned.total_peak, real.total_peak);
      EXPECT_LE(static_cast<double>(planned.total_peak), 1.1 * static_cast<double>(most));
    }
  }
}

TEST(Plan, CountsTheFlopsOfARealStep) {
  TinyRun run({"accumulate=2"});
  run.stream().profile().clear();
  const auto batches = run.feed().step(0, run.engine().token_placements(), run.stream()).microbatches;
  run.engine().gradients(batches);
  const Profile& real = run.stream().profile();
  EXPECT_DOUBLE_EQ(run.setup().plan.flops_per_step,
                   real[KernelKind::kGemm].flops + real[KernelKind::kAttention].flops);
}

TEST(Plan, CountsNothingTwiceForRecomputation) {
  TinyRun plain({}), dropped({"recompute=full"});
  EXPECT_EQ(plain.setup().plan.model_flops_per_token, dropped.setup().plan.model_flops_per_token);
  EXPECT_GT(dropped.setup().plan.flops_per_step, plain.setup().plan.flops_per_step);
}

TEST(Plan, CountsTheTrafficOfARealStep) {
  for (const auto& layout : all_layouts()) {
    TinyRun run(layout);
    run.mesh().clear_traffic();
    run.step(1);
    const auto real = run.mesh().traffic();
    const auto& planned = run.setup().plan.traffic;
    ASSERT_EQ(real.size(), planned.size());
    for (const auto& [name, traffic] : real) {  // the plan speaks of rank 0
      if (testing::world().rank() == 0) {
        EXPECT_EQ(planned.at(name).bytes, traffic.bytes) << name;
      }
    }
  }
}

TEST(Plan, RefusesWhatDoesNotFitWithTheNumbers) {
  Plan plan;
  plan.memory.total_peak = std::int64_t{3} << 30;
  plan.stage_peaks = {std::int64_t{3} << 30};
  const std::vector<int> stages{0, 0};
  plan.memory.at_total_peak[at(Owner::kActivations)] = std::int64_t{2} << 30;
  EXPECT_EQ(memory_error(plan, stages, std::int64_t{7} << 30), "");
  const std::string message = memory_error(plan, stages, std::int64_t{5} << 30);
  EXPECT_NE(message.find("6.0 GiB"), std::string::npos) << message;
  EXPECT_NE(message.find("activations 2.0 GiB"), std::string::npos) << message;
  EXPECT_NE(message.find("5.0 GiB are free"), std::string::npos) << message;
}

TEST(Plan, RefusesAModelLargerThanTheMachineBeforeAnythingIsAllocated) {
  EXPECT_THROW(testing::tiny_setup(
                   {"model.layers=100", "model.width=262144", "model.head_width=64", "model.mlp=1048576"}),
               ConfigError);
}

}  // namespace
}  // namespace dew
