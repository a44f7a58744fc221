// The update of the whole state: what decays, how the average follows, and what a checkpoint is given.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/mpi_world.h"
#include "train/tiny_run.h"

namespace dew {
namespace {

using testing::all_layouts;
using testing::join;
using testing::layouts;
using testing::TinyRun;
using testing::world;

constexpr double kRounding = 4e-16;  // two roundings in f64

std::vector<double> values_of(const Tensor& tensor) {
  const double* data = tensor.data<double>();
  return {data, data + tensor.numel()};
}

TEST(Update, DecaysMatricesAndNoNorms) {
  constexpr double kRate = 0.5, kDecay = 0.1;  // the description's decay
  for (const auto& layout : layouts()) {
    TinyRun run(layout);
    std::vector<std::vector<double>> before;
    for (const ShardedParameter& param : run.store().params()) before.push_back(values_of(param.master));

    run.engine().update(1, kRate, 1);  // gradients of zero: only the decay moves a weight

    int norms = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const ShardedParameter& param = run.store().params()[i];
      const bool norm = param.spec.name.ends_with("norm");
      norms += norm ? 1 : 0;
      const std::vector<double> after = values_of(param.master);
      double largest = 0;  // no ASSERT: a rank that leaves a test alone keeps the others waiting
      for (std::size_t j = 0; j < after.size(); ++j) {
        const double expected = norm ? before[i][j] : before[i][j] * (1 - kRate * kDecay);
        largest = std::max(largest, std::abs(after[j] - expected) / std::abs(before[i][j]));
      }
      EXPECT_LE(largest, kRounding) << param.spec.name;
    }
    EXPECT_EQ(norms, 5) << "two a layer, and the last";
  }
}

TEST(MovingAverage, KeepsItsShareOfThePastAndTakesTheRestFromTheWeights) {
  constexpr double kKept = 0.9;
  for (const auto& layout : layouts()) {
    TinyRun run(join(layout, {"ema=0.9"}));
    const auto shards = run.engine().named_shards();
    const auto shard = [&shards](const std::string& name) {
      const auto at =
          std::find_if(shards.begin(), shards.end(), [&](const NamedShard& s) { return s.name == name; });
      return at == shards.end() ? std::vector<double>() : values_of(at->local);
    };
    const std::string name = "layers.1.mlp.up";
    std::vector<double> expected = shard("/params/" + name);
    EXPECT_FALSE(expected.empty());
    ASSERT_EQ(shard("/ema/" + name), expected) << "starts at the weights";
    for (std::int64_t step = 1; step <= 3; ++step) {
      run.step(step);
      const std::vector<double> weights = shard("/params/" + name), average = shard("/ema/" + name);
      double largest = 0;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        expected[i] = kKept * expected[i] + (1 - kKept) * weights[i];
        largest = std::max(largest, std::abs(average[i] - expected[i]));
      }
      EXPECT_LE(largest, 1e-15) << "weights are below 1: some roundings of 1e-16";
    }
  }
}

TEST(State, HasEveryParameterWithItsMomentsAndAverage) {
  for (const auto& layout : all_layouts()) {
    TinyRun run(join(layout, {"ema=0.9", "model.tied=true"}));
    std::multiset<std::string> names, wanted;
    std::map<std::string, std::int64_t> owned;
    for (const NamedShard& shard : run.engine().named_shards()) {
      names.insert(shard.name);
      owned[shard.name] = shard.owned ? shard.local.numel() : 0;
    }
    for (const ParamSpec& spec : run.store().specs())
      for (const std::string& name : {"/params/" + spec.name, "/optimizer/" + spec.name + "/m",
                                      "/optimizer/" + spec.name + "/v", "/ema/" + spec.name}) {
        wanted.insert(name);
        world().sum({&owned[name], 1});
        EXPECT_EQ(owned[name], spec.shape.numel()) << name << " over " << layout.back();
      }
    EXPECT_EQ(names, wanted) << layout.back();
  }
}

}  // namespace
}  // namespace dew
