// Every layout of the test's ranks against one rank, in f64: loss, norm, each gradient and update.
#include <gtest/gtest.h>

#include "support/mpi_world.h"
#include "train/leaf_comparison.h"
#include "train/tiny_run.h"

namespace dew {
namespace {

using testing::join;
using testing::layouts;

constexpr std::int64_t kSteps = 3;

void expect_equal_to_one_rank(const std::vector<std::string>& overrides) {
  const auto setup = testing::tiny_setup(overrides);
  const Comparison result = compare_with_one_rank(*setup, kSteps);
  std::string text;
  for (const std::string& assignment : overrides) text += assignment + ' ';
  EXPECT_TRUE(result.passed()) << text << '\n' << result.table(8);
}

class Equivalence : public ::testing::TestWithParam<std::vector<std::string>> {};

TEST_P(Equivalence, HoldsForEveryReplicaTimesFsdp) {
  for (const auto& layout : layouts()) expect_equal_to_one_rank(join(layout, GetParam()));
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
                      std::vector<std::string>{"layout.min_shard=1000000", "accumulate=2"}));

TEST(EquivalenceInF32, IsWithinFourTimesTheErrorOfOneRank) {
  for (const auto& layout : layouts())
    expect_equal_to_one_rank(
        join(layout, {"precision={compute: f32, master: f32, reduce: f32}", "accumulate=2"}));
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
