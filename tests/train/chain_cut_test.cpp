// The chain of blocks cut over stages.
#include "train/chain_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace dew {
namespace {

using Costs = std::vector<double>;

double costliest(const ChainCut& cut, const Costs& cost) {
  double most = 0;
  for (int p = 0; p < cut.parts(); ++p)
    most = std::max(most, std::accumulate(cost.begin() + cut.begin(p), cost.begin() + cut.end(p), 0.0));
  return most;
}

/// The least cost of the costliest part over all cuts, by trying them all.
double best(const Costs& cost, std::size_t begin, int parts) {
  if (parts == 1) return std::accumulate(cost.begin() + static_cast<std::ptrdiff_t>(begin), cost.end(), 0.0);
  double least = 1e300, first = 0;
  for (std::size_t end = begin + 1; end + static_cast<std::size_t>(parts) - 1 <= cost.size(); ++end) {
    first += cost[end - 1];
    least = std::min(least, std::max(first, best(cost, end, parts - 1)));
  }
  return least;
}

TEST(CutByCost, HasTheLeastCostlyCostliestPart) {
  const std::vector<Costs> cases{
      {0, 1, 1, 1, 1, 3}, {5, 1, 1, 1, 1, 1, 1}, {0, 2, 2, 2, 7}, {1, 1, 1, 1}, {0, 0, 0, 4}};
  for (const Costs& cost : cases) {
    for (int parts = 1; parts <= static_cast<int>(cost.size()); ++parts) {
      const ChainCut cut = cut_by_cost(cost, parts, 1);
      EXPECT_EQ(costliest(cut, cost), best(cost, 0, parts)) << cut.str();
      for (int p = 0; p < parts; ++p) EXPECT_LT(cut.begin(p), cut.end(p)) << cut.str();
      EXPECT_EQ(cut.blocks(), static_cast<int>(cost.size()));
    }
  }
}

TEST(CutByCost, CutsManyBlocksIntoManyPartsInTime) {
  const ChainCut cut = cut_by_cost(Costs(65538, 1.0), 2, 20000);
  EXPECT_EQ(cut.parts(), 40000);
  EXPECT_EQ(costliest(cut, Costs(65538, 1.0)), 2.0);
}

TEST(CutByCost, GivesEarlierPartsLess) {
  EXPECT_EQ(cut_by_cost(Costs{1, 1, 1, 1, 1}, 2, 1).str(), "2 + 3");
  EXPECT_EQ(cut_by_cost(Costs{0, 1, 1, 1, 1, 2}, 2, 1).str(), "4 + 2");
}

TEST(ChainCut, SendsChunksRoundTheStages) {
  const ChainCut cut = cut_by_cost(Costs(8, 1.0), 2, 2);
  EXPECT_EQ(cut.str(), "2 + 2 + 2 + 2");
  std::vector<int> stages;
  for (int b = 0; b < 8; ++b) stages.push_back(cut.stage_of(b));
  EXPECT_EQ(stages, (std::vector<int>{0, 0, 1, 1, 0, 0, 1, 1}));
  EXPECT_EQ(cut.begin(cut.part(1, 1)), 6);
}

TEST(CutAsListed, AddsTheEndsOfTheChain) {
  const std::vector<std::int64_t> layers{1, 3};
  const ChainCut cut = cut_as_listed(layers, 2, 1);
  EXPECT_EQ(cut.str(), "2 + 4");
  EXPECT_EQ(cut_as_listed(std::vector<std::int64_t>{0, 4, 0}, 3, 1).str(), "1 + 4 + 1");
}

TEST(CutObstacle, SaysWhichNumbersDoNotFit) {
  using Layers = std::vector<std::int64_t>;
  EXPECT_EQ(cut_obstacle({}, 4, 4, 1), "");
  EXPECT_EQ(cut_obstacle({}, 4, 5, 1), "5 stages are more parts than the 4 blocks of the model");
  EXPECT_EQ(cut_obstacle({}, 7, 4, 2), "4 stages x 2 chunks are more parts than the 7 blocks of the model");
  EXPECT_EQ(cut_obstacle(Layers{1, 1}, 4, 2, 1), "");
  EXPECT_EQ(cut_obstacle(Layers{1, 1}, 4, 3, 1), "lists 2 counts for 3 stages; accepted: 3 counts");
  EXPECT_EQ(cut_obstacle(Layers{1, 2}, 4, 2, 1),
            "adds up to 3 layers; accepted: counts that add up to the 2 of the model");
  EXPECT_EQ(cut_obstacle(Layers{1, 0, 1}, 4, 3, 1),
            "leaves part 1 without a block; accepted: 1 or more there");
  EXPECT_EQ(cut_obstacle(Layers{0, 2, 0}, 4, 3, 1), "");
}

}  // namespace
}  // namespace dew
