#include "io/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "base/check.h"

namespace dew {
namespace {

std::vector<std::int64_t> order_of(const Sampler& sampler, std::int64_t windows, std::int64_t epoch) {
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < windows; ++i) {
    const Sampler::Place place = sampler.at(epoch * windows + i);
    EXPECT_EQ(place.epoch, epoch);
    order.push_back(place.window);
  }
  return order;
}

bool is_permutation_of_all(std::vector<std::int64_t> order) {
  std::sort(order.begin(), order.end());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

TEST(WindowCount, WindowsStartASequenceApartAndShareTheirEdgeToken) {
  EXPECT_EQ(window_count(0, 4), 0);
  EXPECT_EQ(window_count(4, 4), 0);
  EXPECT_EQ(window_count(5, 4), 1);
  EXPECT_EQ(window_count(8, 4), 1);
  EXPECT_EQ(window_count(9, 4), 2);
  EXPECT_EQ(window_count(34, 33), 1);
  EXPECT_EQ(window_count(257, 1), 256);
}

TEST(Sampler, ReadsEachWindowOnceAnEpochForEveryCountUpTo300) {
  for (std::int64_t windows = 1; windows <= 300; ++windows) {
    const Sampler sampler(windows, 11);
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      ASSERT_TRUE(is_permutation_of_all(order_of(sampler, windows, epoch))) << windows << ' ' << epoch;
    }
  }
}

TEST(Sampler, ReadsNoWindowTwiceWhereTheWalksAreLongest) {
  for (const std::int64_t windows : {(1 << 14) + 1, (1 << 20) + 7}) {  // just above a power of four
    const std::int64_t stride = windows > 100'000 ? 37 : 1;
    const Sampler sampler(windows, 5);
    std::vector<bool> seen(static_cast<std::size_t>(windows));

    for (std::int64_t i = 0; i < windows; i += stride) {
      const std::int64_t window = sampler.at(windows + i).window;
      ASSERT_TRUE(window >= 0 && window < windows && !seen[static_cast<std::size_t>(window)]) << i;
      seen[static_cast<std::size_t>(window)] = true;
    }
  }
}

TEST(Sampler, StaysInRangeForAMillionMillionWindows) {
  constexpr std::int64_t kWindows = 1'000'000'000'000;
  const Sampler sampler(kWindows, 5);
  std::set<std::int64_t> seen;
  bool upper_half = false;

  for (std::int64_t i = 0; i < 1000; ++i) {
    const std::int64_t window = sampler.at(i * 999'999'937).window;
    ASSERT_TRUE(window >= 0 && window < kWindows);
    upper_half = upper_half || window >= kWindows / 2;
    seen.insert(window);
  }

  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_TRUE(upper_half);
}

TEST(Sampler, IsAPureFunctionOfSeedAndRow) {
  const Sampler one(257, 3), other(257, 3);
  const std::vector<std::int64_t> order = order_of(one, 257, 4);

  for (std::int64_t i = 256; i >= 0; --i)
    EXPECT_EQ(other.at(4 * 257 + i).window, order[static_cast<std::size_t>(i)]);
}

TEST(Sampler, ChangesTheOrderWithEpochAndSeed) {
  const Sampler sampler(33, 3), other(33, 4);
  const std::vector<std::int64_t> first = order_of(sampler, 33, 0);

  EXPECT_NE(first, order_of(sampler, 33, 1));
  EXPECT_NE(first, order_of(other, 33, 0));
  EXPECT_NE(order_of(sampler, 33, 1), order_of(other, 33, 0)) << "a seed must not be an epoch further on";
}

TEST(Sampler, PutsEveryWindowAtEveryPlaceAboutEquallyOften) {
  constexpr std::int64_t kWindows = 33, kEach = 100, kEpochs = kWindows * kEach;
  // Counts are binomial with mean 100, so their chi-squared over 32 x 32 degrees of freedom has mean 1024 and
  // standard deviation 45; the bound is ten of these away, and a shuffle that keeps any order exceeds it a
  // hundredfold.
  constexpr double kBound = 1024 + 10 * 45;
  const Sampler sampler(kWindows, 9);
  std::vector<double> counts(kWindows * kWindows);
  for (std::int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    for (std::int64_t i = 0; i < kWindows; ++i) {
      ++counts[static_cast<std::size_t>(i * kWindows + sampler.at(epoch * kWindows + i).window)];
    }
  }

  double chi_squared = 0;
  for (const double count : counts) chi_squared += (count - kEach) * (count - kEach) / kEach;

  EXPECT_LT(chi_squared, kBound);
}

TEST(Sampler, KeepsItsOrderFromVersionToVersion) {
  // Another order would make a resumed run repeat some rows and skip others.
  EXPECT_EQ(order_of(Sampler(7, 0), 7, 0), (std::vector<std::int64_t>{4, 2, 0, 1, 6, 5, 3}));
}

TEST(Sampler, RefusesNoWindowsAndNegativeRows) {
  EXPECT_THROW(Sampler(0, 1), Error);
  EXPECT_THROW(Sampler(5, 1).at(-1), Error);
}

TEST(RowSplit, CoversTheRowsOfAStepOnceAtEveryRankCount) {
  constexpr std::int64_t kBatch = 24, kStep = 5;
  for (const std::int64_t ranks : {1, 2, 3, 4, 6, 8, 12, 24}) {
    for (const std::int64_t microbatches : {1, 2, 3, 4, 24}) {
      if (kBatch % (ranks * microbatches) != 0) continue;
      std::vector<std::int64_t> rows;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        for (std::int64_t microbatch = 0; microbatch < microbatches; ++microbatch) {
          const RowSplit split{kBatch, rank, ranks, microbatches};
          for (std::int64_t i = 0; i < split.rows(); ++i) rows.push_back(split.first(kStep, microbatch) + i);
        }
      }
      std::vector<std::int64_t> expected(kBatch);
      std::iota(expected.begin(), expected.end(), kStep * kBatch);
      // Contiguous by rank and, within it, by microbatch: in order without sorting.
      EXPECT_EQ(rows, expected) << ranks << " ranks, " << microbatches << " microbatches";
    }
  }
}

TEST(RowSplit, GivesARankTheRowsOfTheRanksThatItReplaces) {
  const RowSplit half{32, 1, 2, 2}, eighth{32, 4, 8, 1};

  EXPECT_EQ(half.first(3, 0), eighth.first(3, 0));
  EXPECT_EQ(half.rows(), 8);
  EXPECT_EQ(eighth.rows(), 4);
}

TEST(RowSplit, GoesOnFromTheRowWithWhichItBegan) {
  // 100 steps of 7 rows, then 24 rows a step.
  const RowSplit split{24, 1, 2, 3, 100, 700};

  EXPECT_EQ(split.start(100), 700);
  EXPECT_EQ(split.first(100, 0), 700 + 12);
  EXPECT_EQ(split.first(102, 2), 700 + 2 * 24 + 12 + 2 * 4);
}

}  // namespace
}  // namespace dew
