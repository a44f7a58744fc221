#include "io/checksum.h"

#include <gtest/gtest.h>

#include <bit>
#include <numeric>
#include <set>

#include "io/checkpoint.h"

namespace dew {
namespace {

constexpr std::size_t kCount = 257;

std::vector<float> ramp() {
  std::vector<float> elements(kCount);
  std::iota(elements.begin(), elements.end(), -100.0f);
  return elements;
}

template <class Bits, class T>
void expect_sum_of_hashes(std::uint64_t first) {
  std::vector<T> elements(kCount);
  std::iota(elements.begin(), elements.end(), T{-100.5});
  std::uint64_t wanted = 0;
  for (std::size_t i = 0; i < kCount; ++i)
    wanted += element_hash(first + i, std::bit_cast<Bits>(elements[i]));

  EXPECT_EQ(hash_run(first, std::span<const T>(elements)), wanted);
}

TEST(Checksum, IsTheSumOfElementHashes) {
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{33}, std::uint64_t{1} << 40}) {
    expect_sum_of_hashes<std::uint32_t, float>(first);
    expect_sum_of_hashes<std::uint64_t, double>(first);
  }
}

TEST(Checksum, IsTheSameInAnyPieces) {
  const std::vector<float> all = ramp();
  const std::span<const float> whole(all);
  const Slab left{{1, 257}, {0, 0}, {1, 33}}, right{{1, 257}, {0, 33}, {1, 224}};

  EXPECT_EQ(hash_box(right, all.data() + 33) + hash_box(left, all.data()), hash_run(0, whole));
}

TEST(Checksum, SeesEverySingleBit) {
  std::vector<float> elements = ramp();
  std::set<std::uint64_t> seen{hash_run(0, std::span<const float>(elements))};
  std::size_t changes = 1;
  for (const std::size_t i : {std::size_t{0}, std::size_t{33}, kCount - 1})
    for (int bit = 0; bit < 32; ++bit) {
      const float old = elements[i];
      elements[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(old) ^ (1u << bit));
      seen.insert(hash_run(0, std::span<const float>(elements)));
      elements[i] = old;
      ++changes;
    }

  EXPECT_EQ(seen.size(), changes);
}

TEST(Checksum, SeesElementsInTheWrongPlace) {
  const std::vector<float> elements = ramp();
  const std::uint64_t right = hash_run(0, std::span<const float>(elements));
  for (std::size_t i = 1; i < kCount; ++i) {
    std::vector<float> swapped = elements, rotated = elements;
    std::swap(swapped[0], swapped[i]);
    std::rotate(rotated.begin(), rotated.begin() + static_cast<std::ptrdiff_t>(i), rotated.end());
    EXPECT_NE(hash_run(0, std::span<const float>(swapped)), right) << i;
    EXPECT_NE(hash_run(0, std::span<const float>(rotated)), right) << i;
  }
  EXPECT_NE(hash_run(1, std::span<const float>(elements)), right);
}

TEST(Checksum, OfZerosIsNotZeroAndTellsTheirNumber) {
  const std::vector<float> zeros(kCount);
  const std::span<const float> all(zeros);

  EXPECT_NE(hash_run(0, all), 0u);
  EXPECT_NE(hash_run(0, all), hash_run(0, all.first(kCount - 1)));
}

}  // namespace
}  // namespace dew
