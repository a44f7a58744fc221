#include "tensor/allocator.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <set>
#include <string>

#include "base/check.h"

namespace dew {
namespace {

constexpr Device kCpu{};
constexpr Device kMeta{Device::Kind::kMeta, 0};

std::int64_t live(const Allocator& allocator, Owner owner) {
  return allocator.use().live[static_cast<std::size_t>(owner)];
}
std::int64_t peak(const Allocator& allocator, Owner owner) {
  return allocator.use().peak[static_cast<std::size_t>(owner)];
}

TEST(Allocator, CountsBytesByOwner) {
  Allocator allocator(kCpu);

  void* weights = allocator.allocate(4096, Owner::kWeights);
  void* gradients = allocator.allocate(640, Owner::kGradients);

  EXPECT_EQ(live(allocator, Owner::kWeights), 4096);
  EXPECT_EQ(live(allocator, Owner::kGradients), 640);
  EXPECT_EQ(live(allocator, Owner::kEma), 0);
  EXPECT_EQ(allocator.use().total_live, 4736);

  allocator.free(weights, 4096, Owner::kWeights);
  allocator.free(gradients, 640, Owner::kGradients);
  EXPECT_EQ(live(allocator, Owner::kWeights), 0);
  EXPECT_EQ(allocator.use().total_live, 0);
  EXPECT_EQ(allocator.use().reserved, 4736) << "freed blocks stay in the pool";
}

TEST(Allocator, GivesWritableAlignedBlocksOfAnySize) {
  Allocator allocator(kCpu);

  for (std::size_t bytes : {1u, 63u, 64u, 65u, 1000u, 1025u, 33u * 257u, (2u << 20) + 1u, (5u << 20) + 3u}) {
    void* block = allocator.allocate(bytes, Owner::kBuffers);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0u) << bytes;
    std::memset(block, 0x5A, bytes);
    EXPECT_GE(allocator.use().total_live, static_cast<std::int64_t>(bytes));
    EXPECT_LE(allocator.use().total_live, static_cast<std::int64_t>(bytes + bytes / 8 + 64))
        << "waste of a size class";
    allocator.free(block, bytes, Owner::kBuffers);
  }
  EXPECT_EQ(allocator.use().total_live, 0);
}

TEST(Allocator, ReusesABlockOfTheSameClass) {
  Allocator allocator(kCpu);

  void* first = allocator.allocate(100000, Owner::kActivations);
  allocator.free(first, 100000, Owner::kActivations);
  void* second = allocator.allocate(99000, Owner::kGradients);

  EXPECT_EQ(first, second);
  EXPECT_EQ(allocator.system_allocations(), 1);
  EXPECT_EQ(live(allocator, Owner::kActivations), 0);
  EXPECT_EQ(live(allocator, Owner::kGradients), allocator.use().total_live);
  allocator.free(second, 99000, Owner::kGradients);
}

TEST(Allocator, NeverGivesALiveBlockTwice) {
  Allocator allocator(kCpu);
  std::set<void*> blocks;

  for (int i = 0; i < 33; ++i) blocks.insert(allocator.allocate(4000, Owner::kActivations));

  EXPECT_EQ(blocks.size(), 33u);
  for (void* block : blocks) allocator.free(block, 4000, Owner::kActivations);
}

TEST(Allocator, AsksTheSystemForNothingInASteadyStep) {
  Allocator allocator(kCpu);
  const auto step = [&] {
    void* a = allocator.allocate(70000, Owner::kActivations);
    void* b = allocator.allocate(257, Owner::kBuffers);
    allocator.free(a, 70000, Owner::kActivations);
    void* c = allocator.allocate(70000, Owner::kGradients);
    allocator.free(c, 70000, Owner::kGradients);
    allocator.free(b, 257, Owner::kBuffers);
  };
  step();
  const std::int64_t after_one = allocator.system_allocations();

  for (int i = 0; i < 10; ++i) step();

  EXPECT_EQ(allocator.system_allocations(), after_one);
}

TEST(Allocator, KeepsPeaksOfOwnersAndOfTheSum) {
  Allocator allocator(kCpu);

  void* a = allocator.allocate(1024, Owner::kActivations);
  void* w = allocator.allocate(512, Owner::kWeights);  // the sum's peak: 1024 + 512
  allocator.free(a, 1024, Owner::kActivations);
  void* w2 = allocator.allocate(896, Owner::kWeights);  // the weights' peak: 1408, the sum is lower

  EXPECT_EQ(peak(allocator, Owner::kActivations), 1024);
  EXPECT_EQ(peak(allocator, Owner::kWeights), 512 + 896);
  EXPECT_EQ(allocator.use().total_peak, 1536);
  const auto& at_peak = allocator.use().at_total_peak;
  EXPECT_EQ(at_peak[static_cast<std::size_t>(Owner::kWeights)], 512);
  EXPECT_EQ(std::accumulate(at_peak.begin(), at_peak.end(), std::int64_t{0}), 1536);

  allocator.reset_peaks();
  EXPECT_EQ(peak(allocator, Owner::kActivations), 0);
  EXPECT_EQ(allocator.use().total_peak, 1408);
  allocator.free(w, 512, Owner::kWeights);
  allocator.free(w2, 896, Owner::kWeights);
}

TEST(Allocator, OfNoBytesIsNullAndCountsNothing) {
  Allocator allocator(kCpu);

  void* block = allocator.allocate(0, Owner::kWeights);
  allocator.free(block, 0, Owner::kWeights);

  EXPECT_EQ(block, nullptr);
  EXPECT_EQ(allocator.use().reserved, 0);
  EXPECT_EQ(allocator.system_allocations(), 0);
}

TEST(Allocator, OnAMetaDeviceCountsTheSameAndHoldsNothing) {
  Allocator meta(kMeta), cpu(kCpu);

  for (std::size_t bytes : {33u, 5000u, 3u << 20}) {
    EXPECT_EQ(meta.allocate(bytes, Owner::kActivations), nullptr);
    cpu.free(cpu.allocate(bytes, Owner::kActivations), bytes, Owner::kActivations);
  }
  void* terabytes = meta.allocate(std::size_t{1} << 44, Owner::kWeights);

  EXPECT_EQ(terabytes, nullptr);
  EXPECT_EQ(live(meta, Owner::kActivations), cpu.use().reserved);
  EXPECT_EQ(live(meta, Owner::kWeights), std::int64_t{1} << 44);
}

TEST(Allocator, NamesWhatDoesNotFit) {
  Allocator allocator(kCpu);
  void* held = allocator.allocate(64 * 1024, Owner::kOptimizer);
  // Opaque to the compiler, which otherwise warns of the absurd size.
  volatile std::size_t absurd = std::size_t{1} << 60;

  std::string message;
  try {
    allocator.allocate(absurd, Owner::kActivations);
  } catch (const Error& error) {
    message = error.what();
  }

  EXPECT_NE(message.find("out of memory"), std::string::npos) << message;
  EXPECT_NE(message.find("1048576.0 TiB for activations"), std::string::npos) << message;
  EXPECT_NE(message.find("optimizer 64.0 KiB"), std::string::npos) << message;
  EXPECT_EQ(allocator.use().total_live, 64 * 1024) << "a refused request must count nothing";
  EXPECT_EQ(live(allocator, Owner::kActivations), 0);
  allocator.free(held, 64 * 1024, Owner::kOptimizer);
}

TEST(Owner, HasDistinctNames) {
  std::set<std::string_view> names;

  for (std::size_t i = 0; i < kOwnerCount; ++i) names.insert(name_of(static_cast<Owner>(i)));

  EXPECT_EQ(names.size(), kOwnerCount);
  EXPECT_THROW(name_of(static_cast<Owner>(kOwnerCount)), Error);
}

}  // namespace
}  // namespace dew
