#include "base/philox.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <set>
#include <string>

namespace dew {
namespace {

struct KnownAnswer {
  std::uint64_t key, counter_low, counter_high;
  PhiloxBlock block;
};

// The known answers of Random123 for philox4x32 with 10 rounds (Salmon et al., SC11), words in its order:
// counter 0 to 3, key 0 and 1.
constexpr KnownAnswer kKnownAnswers[] = {
    {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {~0ull, ~0ull, ~0ull, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {0x299f31d0'a4093822,
     0x85a308d3'243f6a88,
     0x03707344'13198a2e,
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

TEST(Philox, GivesTheKnownAnswers) {
  for (const KnownAnswer& known : kKnownAnswers)
    EXPECT_EQ(philox(known.key, known.counter_low, known.counter_high), known.block) << std::hex << known.key;
}

TEST(Philox, IsAConstantExpression) {
  constexpr PhiloxBlock kBlock = philox(0, 0, 0);

  static_assert(kBlock[0] == 0x6627e8d5);
}

TEST(Philox, EveryBitOfKeyAndCounterMatters) {
  const PhiloxBlock base = philox(1, 2, 3);
  // 128 output bits flip with probability one half: mean 64, standard deviation 5.7. Six deviations over 192
  // trials.
  constexpr int kLow = 30, kHigh = 98;

  for (int bit = 0; bit < 64; ++bit) {
    const std::uint64_t flip = std::uint64_t{1} << bit;
    for (const PhiloxBlock& other :
         {philox(1 ^ flip, 2, 3), philox(1, 2 ^ flip, 3), philox(1, 2, 3 ^ flip)}) {
      int flipped = 0;
      for (std::size_t word = 0; word < 4; ++word) flipped += std::popcount(base[word] ^ other[word]);
      EXPECT_GT(flipped, kLow) << bit;
      EXPECT_LT(flipped, kHigh) << bit;
    }
  }
}

TEST(StreamKey, DiffersBySeedAndByName) {
  std::set<std::uint64_t> keys;
  int made = 0;

  for (std::uint64_t seed = 0; seed < 33; ++seed)
    for (int layer = 0; layer < 257; ++layer, ++made)
      keys.insert(stream_key(seed, "layers." + std::to_string(layer)));
  for (std::string_view name : {"", "a", "b", "ab", "ba"}) keys.insert(stream_key(0, name)), ++made;

  EXPECT_EQ(keys.size(), static_cast<std::size_t>(made));
}

// These values are in every checkpoint's future: a change of them changes every run that is resumed or
// repeated.
TEST(StreamKey, StaysWhatItWas) {
  EXPECT_EQ(mix64(0), 0u);
  EXPECT_EQ(mix64(0x9E3779B97F4A7C15ull), 0xE220A8397B1DCDAFull)
      << "the first output of splitmix64 from seed 0";
  EXPECT_EQ(stream_key(0, ""), mix64(0xCBF29CE484222325ull ^ 0xE220A8397B1DCDAFull));
  EXPECT_EQ(stream_key(0, "a"), mix64(0xAF63DC4C8601EC8Cull ^ 0xE220A8397B1DCDAFull)) << "FNV-1a of \"a\"";
}

}  // namespace
}  // namespace dew
