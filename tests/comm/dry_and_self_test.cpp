#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/check.h"
#include "comm/communicator.h"
#include "comm/mesh.h"

namespace dew {
namespace {

// A stream on a meta device: shapes and byte counts, no memory.
struct Meta {
  Allocator pool{Device{Device::Kind::kMeta, 0}};
  Stream stream{pool};
  Tensor f32(std::int64_t n) { return Tensor::empty({n}, DType::kF32, stream, Owner::kGathered); }
  std::int64_t buffers() const { return pool.use().live[static_cast<std::size_t>(Owner::kBuffers)]; }
};

TEST(DryCommunicator, CountsWhatARankSends) {
  Meta meta;
  const auto group = make_dry_communicator("fsdp", 1, 4);
  const std::vector<Transfer> gather{{meta.f32(10), meta.f32(40)}}, scatter{{meta.f32(40), meta.f32(10)}};
  const std::vector<Tensor> small{meta.f32(33)}, large{meta.f32(40'001)};

  group->all_gather(gather, meta.stream).wait(meta.stream);
  EXPECT_EQ(group->traffic().bytes, 3 * 40);
  group->clear_traffic();
  group->reduce_scatter(scatter, meta.stream).wait(meta.stream);
  EXPECT_EQ(group->traffic().bytes, 3 * 40);
  group->clear_traffic();
  group->all_reduce(small, meta.stream).wait(meta.stream);
  EXPECT_EQ(group->traffic().bytes, 3 * 33 * 4);
  group->clear_traffic();
  group->all_reduce(large, meta.stream).wait(meta.stream);
  EXPECT_EQ(group->traffic().bytes, 3 * (2 * 10'000 + 1) * 4);
  group->clear_traffic();
  group->broadcast(small, 0, meta.stream).wait(meta.stream);
  EXPECT_EQ(group->traffic().bytes, 0);  // not the root
  EXPECT_EQ(group->traffic().calls, 1);
}

TEST(DryCommunicator, HoldsTheScratchUntilTheWait) {
  Meta meta;
  const auto group = make_dry_communicator("fsdp", 0, 2);
  const std::vector<Transfer> scatter{{meta.f32(1 << 20), meta.f32(1 << 19)}};

  Ticket ticket = group->reduce_scatter(scatter, meta.stream);
  const std::int64_t during = meta.buffers();
  ticket.wait(meta.stream);

  EXPECT_GE(during, 4 << 20);
  EXPECT_EQ(meta.buffers(), 0);
}

TEST(DryCommunicator, RefusesTensorsWithMemory) {
  Allocator pool{Device{}};
  Stream stream(pool);
  const std::vector<Tensor> tensors{Tensor::zeros({3}, DType::kF32, stream, Owner::kWeights)};

  EXPECT_THROW(make_dry_communicator("fsdp", 0, 2)->all_reduce(tensors, stream).wait(stream), Error);
}

TEST(DryMesh, HasEveryProductOfItsAxes) {
  MeshShape shape;
  shape[Axis::kReplica] = 2;
  shape[Axis::kFsdp] = 3;
  shape[Axis::kTensor] = 2;
  const Mesh mesh(shape, shape.coord_of(7), {});

  EXPECT_EQ(mesh.world().size(), 12);
  EXPECT_EQ(mesh.world().rank(), 7);
  EXPECT_EQ(mesh.over({Axis::kReplica, Axis::kFsdp}).size(), 6);
  EXPECT_EQ(mesh.over({Axis::kReplica, Axis::kFsdp}).name(), "replica x fsdp");
  EXPECT_EQ(mesh.along(Axis::kStage).size(), 1);
  EXPECT_EQ(&mesh.over({Axis::kFsdp, Axis::kStage}), &mesh.along(Axis::kFsdp));
}

class Self : public ::testing::Test {
 protected:
  Tensor numbers(std::vector<float> values) {
    Tensor tensor =
        Tensor::zeros({static_cast<std::int64_t>(values.size())}, DType::kF32, stream_, Owner::kWeights);
    std::copy(values.begin(), values.end(), tensor.data<float>());
    return tensor;
  }
  static std::vector<float> values(const Tensor& tensor) {
    return {tensor.data<float>(), tensor.data<float>() + tensor.numel()};
  }

  Allocator pool_{Device{}};
  Stream stream_{pool_};
  std::unique_ptr<Communicator> self_ = make_self_communicator("self");
};

TEST_F(Self, CopiesOrLeavesAlone) {
  const std::vector<float> three{1, 2, 3};
  const Tensor source = numbers(three), gathered = numbers({0, 0, 0}), summed = numbers({0, 0, 0});
  const std::vector<Transfer> gather{{source, gathered}}, scatter{{source, summed}},
      in_place{{source, source}};

  self_->all_gather(gather, stream_).wait(stream_);
  self_->reduce_scatter(scatter, stream_).wait(stream_);
  self_->all_gather(in_place, stream_).wait(stream_);
  self_->all_reduce({&source, 1}, stream_).wait(stream_);

  EXPECT_EQ(values(gathered), three);
  EXPECT_EQ(values(summed), three);
  EXPECT_EQ(values(source), three);
  EXPECT_EQ(self_->traffic().bytes, 0);
}

TEST_F(Self, ExchangesWithItself) {
  const Tensor source = numbers({4, 5}), target = numbers({0, 0});
  const std::vector<PeerTransfer> both{{PeerTransfer::Kind::kSend, 0, source},
                                       {PeerTransfer::Kind::kRecv, 0, target}};

  self_->exchange(both, stream_).wait(stream_);

  EXPECT_EQ(values(target), values(source));
}

TEST_F(Self, RefusesWrongSizesAndTypes) {
  const Tensor three = numbers({1, 2, 3}), two = numbers({0, 0});
  const std::vector<Transfer> uneven{{three, two}};
  const std::vector<Tensor> bytes{Tensor::zeros({3}, DType::kU8, stream_, Owner::kWeights)};
  const std::vector<Transfer> same{{three, three}};
  const std::vector<std::int64_t> one{1}, rows{3};

  EXPECT_THROW(self_->all_gather(uneven, stream_).wait(stream_), Error);
  EXPECT_THROW(self_->reduce_scatter(uneven, stream_).wait(stream_), Error);
  EXPECT_THROW(self_->reduce_scatter(same, stream_).wait(stream_), Error);  // overlap
  EXPECT_THROW(self_->all_reduce(bytes, stream_).wait(stream_), Error);
  EXPECT_THROW(self_->broadcast(bytes, 1, stream_).wait(stream_), Error);
  EXPECT_THROW(self_->all_to_all_rows({three, numbers({0, 0, 0})}, one, rows, stream_).wait(stream_), Error);
}

}  // namespace
}  // namespace dew
