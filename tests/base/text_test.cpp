#include "base/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "base/philox.h"

namespace dew {
namespace {

TEST(Format, ReturnsTextOfAnyLength) {
  const std::string word(5000, 'x');

  EXPECT_EQ(format("%d of %s", 7, "nine"), "7 of nine");
  EXPECT_EQ(format("<%s>", word.c_str()), "<" + word + ">");
  EXPECT_EQ(format("%s", ""), "");
}

TEST(FormatBytes, ChoosesTheUnit) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(33.0 * 1024 * 1024), "33.0 MiB");
  EXPECT_EQ(format_bytes(2.0 * 1024 * 1024 * 1024), "2.0 GiB");
  EXPECT_EQ(format_bytes(std::ldexp(1.0, 60)), "1048576.0 TiB");
}

TEST(FormatCount, KeepsThreeDigits) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(7), "7");
  EXPECT_EQ(format_count(950), "950");
  EXPECT_EQ(format_count(999.6), "1.00k");
  EXPECT_EQ(format_count(12345), "12.3k");
  EXPECT_EQ(format_count(123456), "123k");
  EXPECT_EQ(format_count(1.2e6), "1.20M");
  EXPECT_EQ(format_count(9.996e6), "10.0M");
  EXPECT_EQ(format_count(3.4e9), "3.40G");
  EXPECT_EQ(format_count(0.25), "0.25");
}

TEST(FormatDuration, CarriesIntoTheNextUnit) {
  EXPECT_EQ(format_duration(0.04), "0.0s");
  EXPECT_EQ(format_duration(3.21), "3.2s");
  EXPECT_EQ(format_duration(12.4), "12s");
  EXPECT_EQ(format_duration(59.7), "1m 00s");
  EXPECT_EQ(format_duration(185), "3m 05s");
  EXPECT_EQ(format_duration(3599.6), "1h 00m");
  EXPECT_EQ(format_duration(7800), "2h 10m");
  EXPECT_EQ(format_duration(100 * 3600.0), "100h 00m");
}

TEST(FormatExact, ReadsBackToTheSameDouble) {
  std::vector<double> values{0.0,
                             -0.0,
                             0.1,
                             1.0 / 3,
                             1e-3,
                             3e300,
                             std::numeric_limits<double>::denorm_min(),
                             std::numeric_limits<double>::max(),
                             123456789012345678.0};
  for (std::uint64_t i = 0; i < 257; ++i) {
    const PhiloxBlock block = philox(1, i, 0);
    values.push_back(std::ldexp(block[0] / 3.0, static_cast<int>(block[1] % 600) - 300));
  }

  for (double value : values) {
    const std::string text = format_exact(value);
    const double back = std::strtod(text.c_str(), nullptr);
    EXPECT_EQ(back, value) << text;
    EXPECT_EQ(std::signbit(back), std::signbit(value)) << text;
  }
}

TEST(FormatExact, IsShort) {
  EXPECT_EQ(format_exact(0.1), "0.1");
  EXPECT_EQ(format_exact(300), "300");
  EXPECT_EQ(format_exact(0.02), "0.02");
}

TEST(NearestWord, FindsASlipOfTheHand) {
  const std::vector<std::string> keys{"steps", "seed", "name", "dir", "weight_decay", "min_shard"};

  EXPECT_EQ(nearest_word("stpes", keys), "steps");
  EXPECT_EQ(nearest_word("step", keys), "steps");
  EXPECT_EQ(nearest_word("sed", keys), "seed");
  EXPECT_EQ(nearest_word("wieght_decay", keys), "weight_decay");
  EXPECT_EQ(nearest_word("minshard", keys), "min_shard");
  EXPECT_EQ(nearest_word("dir", keys), "dir");
}

TEST(NearestWord, SaysNothingWhenNothingIsNear) {
  const std::vector<std::string> keys{"steps", "seed", "weight_decay"};

  EXPECT_EQ(nearest_word("quantisation", keys), "");
  EXPECT_EQ(nearest_word("zzzzz", keys), "");
  EXPECT_EQ(nearest_word("steps", {}), "");
}

}  // namespace
}  // namespace dew
