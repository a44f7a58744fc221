#include "tensor/stream.h"

#include <gtest/gtest.h>

#include <array>
#include <string_view>
#include <utility>

namespace dew {
namespace {

TEST(Stream, HasTheDeviceOfItsPool) {
  Allocator allocator(Device{Device::Kind::kMeta, 3});
  Stream stream(allocator);

  EXPECT_TRUE(stream.device().is_meta());
  EXPECT_EQ(stream.device().index, 3);
  EXPECT_EQ(&stream.allocator(), &allocator);
}

TEST(Stream, CallsTheProgressHookWhenThereIsOne) {
  Allocator allocator(Device{});
  Stream stream(allocator);
  int calls = 0;

  stream.progress();
  stream.set_progress([&calls] { ++calls; });
  stream.progress();
  stream.progress();

  EXPECT_EQ(calls, 2);
}

TEST(Profile, AddsCallsFlopsAndBytesByKind) {
  Allocator allocator(Device{});
  Stream stream(allocator);

  { const KernelScope scope(stream, KernelKind::kGemm, 1000, 64); }
  { const KernelScope scope(stream, KernelKind::kGemm, 500, 32); }
  { const KernelScope scope(stream, KernelKind::kNorm, 7, 5); }

  const Profile& profile = stream.profile();
  EXPECT_EQ(profile[KernelKind::kGemm].calls, 2);
  EXPECT_EQ(profile[KernelKind::kGemm].flops, 1500);
  EXPECT_EQ(profile[KernelKind::kGemm].bytes, 96);
  EXPECT_EQ(profile[KernelKind::kNorm].calls, 1);
  EXPECT_EQ(profile[KernelKind::kRope].calls, 0);
  EXPECT_EQ(profile.flops(), 1507);
}

TEST(Profile, ReadsTheClockOnlyWhileTimed) {
  Allocator allocator(Device{});
  Stream stream(allocator);

  { const KernelScope scope(stream, KernelKind::kGemm, 1, 1); }
  EXPECT_EQ(stream.profile()[KernelKind::kGemm].seconds, 0);

  stream.profile().timed = true;
  double sink = 0;
  {
    const KernelScope scope(stream, KernelKind::kGemm, 1, 1);
    for (int i = 0; i < 100000; ++i) sink += i;
  }
  EXPECT_GT(sink, 0);
  EXPECT_GT(stream.profile()[KernelKind::kGemm].seconds, 0);
}

TEST(Profile, ClearForgetsCountsAndKeepsTheClockSetting) {
  Profile profile;
  profile.timed = true;
  profile[KernelKind::kReduce].flops = 3;

  profile.clear();

  EXPECT_EQ(profile.flops(), 0);
  EXPECT_TRUE(profile.timed);
}

TEST(KernelKind, HasItsOwnName) {
  constexpr std::array<std::pair<KernelKind, std::string_view>, kKernelKindCount> kNames{{
      {KernelKind::kGemm, "gemm"},
      {KernelKind::kAttention, "attention"},
      {KernelKind::kNorm, "norm"},
      {KernelKind::kRope, "rope"},
      {KernelKind::kActivation, "activation"},
      {KernelKind::kEmbedding, "embedding"},
      {KernelKind::kCrossEntropy, "cross_entropy"},
      {KernelKind::kPointwise, "pointwise"},
      {KernelKind::kOptimizer, "optimizer"},
      {KernelKind::kReduce, "reduce"},
      {KernelKind::kRandom, "random"},
      {KernelKind::kCommunication, "communication"},
      {KernelKind::kDataWait, "data_wait"},
  }};

  for (const auto& [kind, name] : kNames) EXPECT_EQ(name_of(kind), name);
}

}  // namespace
}  // namespace dew
