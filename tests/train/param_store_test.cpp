#include "train/param_store.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "support/mpi_world.h"
#include "train/gathered_state.h"
#include "train/tiny_run.h"

namespace dew {
namespace {

using testing::all_layouts;
using testing::join;
using testing::layouts;
using testing::TinyRun;
using testing::world;

std::vector<std::vector<double>> whole_weights(TinyRun& run) {
  return gather_whole(run.store(), world(), [](const ShardedParameter& p) { return p.master; });
}

TEST(ParamStore, InitialWeightsDependOnNoLayout) {
  const HostGroup alone = HostGroup::alone();
  TinyRun one({}, alone);
  const auto expected = gather_whole(one.store(), alone, [](const ShardedParameter& p) { return p.master; });
  for (const auto& layout : all_layouts()) {
    for (const char* min_shard : {"1", "700", "1000000"}) {
      TinyRun run(join(layout, {std::string("layout.min_shard=") + min_shard}));
      EXPECT_EQ(whole_weights(run), expected) << layout.back() << ' ' << min_shard;
    }
  }
}

TEST(ParamStore, InitialWeightsDependOnTheSeedAndTheName) {
  TinyRun a({}), b({"run.seed=4"});
  EXPECT_NE(whole_weights(a), whole_weights(b));
  const auto weights = whole_weights(a);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (weights[i].size() != weights[j].size() || !a.store().params()[i].spec.decays()) continue;
      EXPECT_NE(weights[i], weights[j]) << a.store().params()[i].spec.name;
    }
  }
}

TEST(ParamStore, GathersTheWholeWeightOnEveryRank) {
  for (const auto& layout : layouts()) {
    TinyRun run(layout);
    const auto expected = whole_weights(run);
    for (int block = 0; block < run.setup().cut.blocks(); ++block) {
      run.store().gather(block);
      const ParamViews views = run.store().get(block, false);
      const auto params = run.setup().model.chain[static_cast<std::size_t>(block)]->params();
      for (std::size_t i = 0; i < params.size(); ++i) {
        const auto all = run.store().params();
        const auto at = std::find_if(all.begin(), all.end(),
                                     [&](const auto& p) { return p.spec.name == params[i].name; });
        const auto& whole = expected[static_cast<std::size_t>(at - all.begin())];
        const double* data = views.values[i].data<double>();
        EXPECT_EQ(std::vector<double>(data, data + views.values[i].numel()), whole) << params[i].name;
      }
      run.store().release(block);
    }
  }
}

TEST(ParamStore, HoldsAShardAndNeverTheWholeModel) {
  const int ranks = world().size();
  TinyRun run({"mesh.replica=1", "mesh.fsdp=" + std::to_string(ranks)});
  const MemoryUse before = run.allocator().use();
  const std::int64_t model = 8 * run.setup().model.parameter_count();
  const std::int64_t slack = 16 * 8 * static_cast<std::int64_t>(run.store().params().size()) + model / 8;
  EXPECT_LE(before.peak[static_cast<std::size_t>(Owner::kWeights)], model / ranks + slack);
  EXPECT_LE(before.peak[static_cast<std::size_t>(Owner::kOptimizer)], 2 * model / ranks + 2 * slack);

  run.step(1);

  if (ranks > 1) {  // two blocks at most are gathered at one time
    EXPECT_LT(run.allocator().use().peak[static_cast<std::size_t>(Owner::kGathered)], model);
  }
  EXPECT_EQ(run.allocator().use().live[static_cast<std::size_t>(Owner::kGathered)], 0);
}

TEST(ParamStore, HoldsTheBlocksOfItsStageAlone) {
  const int stages = world().size();
  TinyRun run({"mesh.replica=1", "mesh.stage=" + std::to_string(stages), "model.tied=true"});
  const ChainCut& cut = run.setup().cut;
  ASSERT_EQ(cut.stages, stages);
  std::set<std::string> expected;
  for (int b = cut.begin(world().rank()); b < cut.end(world().rank()); ++b)
    for (const ParamSpec& spec : run.setup().model.chain[static_cast<std::size_t>(b)]->params())
      expected.insert(spec.name);
  std::set<std::string> held;
  for (const ShardedParameter& param : run.store().params()) held.insert(param.spec.name);
  EXPECT_EQ(held, expected);
  const ShardedParameter* table = run.store().find(0);
  ASSERT_EQ(run.store().specs()[0].name, "embed.weight");
  EXPECT_EQ(table != nullptr, world().rank() == 0 || world().rank() == stages - 1);
  if (table != nullptr) {
    EXPECT_EQ(table->owned, world().rank() == 0);
  }
}

TEST(ParamStore, CountsHoldersOfAGather) {
  TinyRun run({"mesh.replica=1", "mesh.fsdp=" + std::to_string(world().size())});
  ParamStore& store = run.store();
  store.gather(1);
  store.gather(1);
  const ParamViews first = store.get(1, false);
  store.release(1);

  const ParamViews second = store.get(1, false);

  EXPECT_EQ(first.values[1].raw(), second.values[1].raw());
  EXPECT_THROW(store.weights_changed(), Error);
  store.release(1);
  EXPECT_THROW(store.release(1), Error);
  EXPECT_THROW(store.get(1, false), Error);
}

TEST(ParamStore, OwnsEveryElementOnce) {
  for (const auto& layout : all_layouts()) {
    TinyRun run(join(layout, {"layout.min_shard=500"}));
    for (std::size_t i = 0; i < run.store().specs().size(); ++i) {
      const ShardedParameter* param = run.store().find(static_cast<int>(i));
      std::int64_t owned = param != nullptr && param->owned ? param->range.size() : 0;
      world().sum({&owned, 1});
      EXPECT_EQ(owned, run.store().specs()[i].shape.numel()) << run.store().specs()[i].name;
    }
  }
}

TEST(GradientNorm, IsTheNormOfTheWholeGradient) {
  for (const auto& layout : all_layouts()) {
    for (const char* min_shard : {"1", "500", "1000000"}) {
      TinyRun run(join(layout, {std::string("layout.min_shard=") + min_shard, "model.tied=true"}));
      const StepSums sums = run.step(1);
      double square = 0;
      for (const auto& leaf :
           gather_whole(run.store(), world(), [](const ShardedParameter& p) { return p.gradient; }))
        square += std::inner_product(leaf.begin(), leaf.end(), leaf.begin(), 0.0);
      EXPECT_NEAR(sums.grad_norm, std::sqrt(square), 1e-12 * std::sqrt(square))
          << layout.back() << ' ' << min_shard;
    }
  }
}

}  // namespace
}  // namespace dew
