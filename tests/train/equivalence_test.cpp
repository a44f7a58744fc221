// Every layout of the test's ranks against one rank, in f64: loss, norm, each gradient and update.
#include <gtest/gtest.h>

#include "support/mpi_world.h"
#include "train/leaf_comparison.h"
#include "train/tiny_run.h"

namespace dew {
namespace {

using testing::all_layouts;
using testing::axis_layouts;
using testing::join;
using testing::layouts;
using testing::mesh_of;

constexpr std::int64_t kSteps = 3;

void expect_equal_to_one_rank(const std::vector<std::string>& overrides) {
  const auto setup = testing::tiny_setup(overrides);
  const Comparison result = compare_with_one_rank(*setup, kSteps);
  std::string text;
  for (const std::string& assignment : overrides) text += assignment + ' ';
  EXPECT_TRUE(result.passed()) << text << '\n' << result.table(8);
}

class Equivalence : public ::testing::TestWithParam<std::vector<std::string>> {};

TEST_P(Equivalence, HoldsForEveryAxis) {
  for (const auto& layout : axis_layouts()) expect_equal_to_one_rank(join(layout, GetParam()));
}

TEST(EquivalenceOfPairs, HoldsForEveryPairOfAxes) {
  for (const auto& layout : all_layouts())
    expect_equal_to_one_rank(
        join(layout, {"model.tied=true", "accumulate=2", "recompute=[attention, mlp_hidden]"}));
}

INSTANTIATE_TEST_SUITE_P(
    Options, Equivalence,
    ::testing::Values(std::vector<std::string>{}, std::vector<std::string>{"accumulate=2"},
                      std::vector<std::string>{"accumulate=2", "layout.reduce=microbatch"},
                      std::vector<std::string>{"recompute=full"},
                      std::vector<std::string>{"recompute=[attention, mlp_hidden]", "accumulate=2"},
                      std::vector<std::string>{"model.tied=true", "accumulate=2"},
                      std::vector<std::string>{"model.tied=true", "layout.reduce=microbatch", "accumulate=2"},
                      std::vector<std::string>{"model.window=[3, 0]", "ema=0.9"},
                      std::vector<std::string>{"layout.min_shard=500"},
                      std::vector<std::string>{"layout.min_shard=1000000", "accumulate=2"},
                      std::vector<std::string>{"model.norm=layer", "model.activation=gelu_tanh",
                                               "model.bias=true", "model.position=learned",
                                               "model.dropout=0.2", "model.tied=true",
                                               "recompute=[attention, mlp_hidden]", "accumulate=2"},
                      std::vector<std::string>{"model.qk_norm=true", "model.activation=gelu",
                                               "model.bias=true",
                                               "model.rope_scaling={kind: llama3, original_positions: 16}",
                                               "model.dropout=0.1", "recompute=full"}));

/// Options of one axis: on all ranks of the test along it.
struct AxisCase {
  const char* axis;
  std::vector<std::string> options;
};

class EquivalenceOfOneAxis : public ::testing::TestWithParam<AxisCase> {};

TEST_P(EquivalenceOfOneAxis, HoldsForItsOptions) {
  const AxisCase& tested = GetParam();
  if (testing::world().size() == 1) return;  // no axis has an extent
  expect_equal_to_one_rank(join(mesh_of({{tested.axis, testing::world().size()}}), tested.options));
}

INSTANTIATE_TEST_SUITE_P(
    Options, EquivalenceOfOneAxis,
    ::testing::Values(
        AxisCase{"sequence", {"sequence_exchange=all_to_all"}},
        AxisCase{"sequence", {"sequence_exchange=gather"}}, AxisCase{"sequence", {"sequence_exchange=ring"}},
        AxisCase{"sequence", {"sequence_exchange=ring", "model.window=[7, 0]", "recompute=full"}},
        AxisCase{"sequence", {"sequence_exchange=band", "model.window=5"}},
        AxisCase{"sequence", {"sequence_exchange=measured"}},
        AxisCase{"sequence", {"layout.rules={storage: [fsdp, sequence]}"}},
        AxisCase{"expert", {"layout.rules={storage: [fsdp, expert]}"}},
        AxisCase{"tensor", {"layout.rules={vocab: []}"}}, AxisCase{"tensor", {"layout.rules={mlp: []}"}},
        AxisCase{"tensor", {"layout.rules={heads: [], kv_heads: []}"}},
        AxisCase{"tensor", {"layout.rules={kv_heads: []}", "model.tied=true"}},
        AxisCase{"tensor", {"model.kv_heads=1", "accumulate=2"}},
        AxisCase{"stage", {"pipeline.schedule=gpipe", "model.tied=true"}},
        AxisCase{"stage", {"pipeline.schedule=zero_bubble", "pipeline.microbatches=6"}},
        AxisCase{"stage", {"pipeline.schedule=zero_bubble", "recompute=full", "model.tied=true"}},
        AxisCase{"stage", {"pipeline.schedule=interleaved", "model.layers=8", "pipeline.microbatches=4"}},
        AxisCase{"stage",
                 {"pipeline.schedule=interleaved", "model.layers=10", "pipeline.microbatches=3",
                  "model.tied=true"}},
        AxisCase{"stage", {"accumulate=2", "layout.reduce=microbatch"}},
        AxisCase{"sequence", {"sequence_exchange=all_to_all", "model.dropout=0.3"}},
        AxisCase{"sequence", {"sequence_exchange=gather", "model.dropout=0.3"}},
        AxisCase{"sequence", {"sequence_exchange=ring", "model.dropout=0.3"}},
        AxisCase{"sequence", {"sequence_exchange=band", "model.window=5", "model.dropout=0.3"}},
        AxisCase{"tensor",
                 {"layout.rules={mlp: []}", "model.bias=true", "model.activation=gelu", "model.dropout=0.1"}},
        AxisCase{"tensor",
                 {"layout.rules={heads: [], kv_heads: [], vocab: []}", "model.bias=true",
                  "model.qk_norm=true", "model.position=learned", "model.norm=layer", "model.dropout=0.1"}},
        AxisCase{"tensor",
                 {"model.kv_heads=1", "model.bias=true", "model.qk_norm=true", "model.dropout=0.1"}}));

TEST(EquivalenceInF32, IsWithinFourTimesTheErrorOfOneRank) {
  for (const auto& layout : axis_layouts())
    expect_equal_to_one_rank(
        join(layout, {"precision={compute: f32, master: f32, reduce: f32}", "accumulate=2"}));
}

TEST(EquivalenceInBf16, IsWithinFourTimesTheErrorOfOneRank) {
  for (const auto& layout : axis_layouts())
    expect_equal_to_one_rank(join(layout, {"precision={compute: bf16, master: f32, reduce: f32}",
                                           "accumulate=2", "model.dropout=0.1", "recompute=[qkv]"}));
}

TEST(EquivalenceInMixedPrecision, HoldsWithWiderMasterAndReduction) {
  for (const auto& layout : layouts()) {
    expect_equal_to_one_rank(
        join(layout, {"precision={compute: f32, master: f64, reduce: f64}", "accumulate=2"}));
    expect_equal_to_one_rank(join(layout, {"precision={compute: f32, master: f64, reduce: f32}",
                                           "accumulate=2", "layout.reduce=microbatch"}));
  }
}

TEST(Comparison, FailsWithoutAnyLeafAndOnNaN) {
  EXPECT_FALSE(Comparison{}.passed());
  Comparison result;
  result.leaves.push_back({1, "loss", "", std::numeric_limits<double>::quiet_NaN(), 1.0, 1e-11});
  EXPECT_FALSE(result.passed());
}

}  // namespace
}  // namespace dew
