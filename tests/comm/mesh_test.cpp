#include "comm/mesh.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/check.h"
#include "comm/topology.h"
#include "support/mpi_world.h"

namespace dew {
namespace {

using testing::world;

// Meshes of as many ranks as the test has: rows, columns, and three axes.
std::vector<MeshShape> shapes() {
  const int ranks = world().size();
  std::vector<MeshShape> result;
  for (int a = 1; a <= ranks; ++a) {
    for (int b = 1; a * b <= ranks; ++b) {
      if (ranks % (a * b) != 0) continue;
      MeshShape shape;
      shape[Axis::kReplica] = a;
      shape[Axis::kFsdp] = b;
      shape[Axis::kTensor] = ranks / (a * b);
      result.push_back(shape);
    }
  }
  return result;
}

const std::vector<AxisSet> kProducts{
    {Axis::kReplica, Axis::kFsdp}, {Axis::kReplica, Axis::kTensor}, {Axis::kFsdp, Axis::kTensor}};

class MeshOverRanks : public ::testing::Test {
 protected:
  Allocator pool_{Device{}};
  Stream stream_{pool_};
};

TEST_F(MeshOverRanks, GroupsHoldTheRanksThatDifferOnTheirAxes) {
  for (const MeshShape& shape : shapes()) {
    const Mesh mesh(world(), shape, kProducts);
    std::vector<AxisSet> sets = kProducts;
    for (Axis axis : kAllAxes) sets.push_back({axis});
    sets.insert(sets.end(), {kDataAxes, kEveryAxis, AxisSet{}});
    for (AxisSet axes : sets) {
      Communicator& group = mesh.over(axes);
      ASSERT_EQ(group.size(), shape.size_of(axes)) << axes.str();
      ASSERT_EQ(group.rank(), shape.index_in(axes, mesh.coord()));
      const Tensor own = Tensor::empty({1}, DType::kF32, stream_, Owner::kBuffers);
      const Tensor all = Tensor::empty({group.size()}, DType::kF32, stream_, Owner::kBuffers);
      *own.data<float>() = static_cast<float>(world().rank());
      const Transfer transfer{own, all};

      group.all_gather({&transfer, 1}, stream_).wait(stream_);

      int found = 0;
      for (int rank = 0; rank < shape.size(); ++rank) {
        const MeshCoord coord = shape.coord_of(rank);
        if (shape.group_of(axes, coord) != shape.group_of(axes, mesh.coord())) continue;
        ASSERT_EQ(all.data<float>()[shape.index_in(axes, coord)], static_cast<float>(rank)) << axes.str();
        ++found;
      }
      ASSERT_EQ(found, group.size());
    }
  }
}

TEST_F(MeshOverRanks, NamesAndCountsItsGroups) {
  MeshShape shape;
  shape[Axis::kReplica] = 2;
  shape[Axis::kTensor] = world().size() / 2;
  Mesh mesh(world(), shape, {});
  const Tensor x = Tensor::zeros({5}, DType::kF32, stream_, Owner::kBuffers);

  mesh.along(Axis::kReplica).all_reduce({&x, 1}, stream_).wait(stream_);

  EXPECT_EQ(mesh.traffic().at("replica").bytes, 20);
  EXPECT_EQ(mesh.traffic().at("world").bytes, 0);
  EXPECT_FALSE(mesh.traffic().contains("fsdp"));
  mesh.clear_traffic();
  EXPECT_EQ(mesh.traffic().at("replica").calls, 0);
}

TEST_F(MeshOverRanks, PollsOperationsOfAllItsGroups) {
  MeshShape shape;
  shape[Axis::kReplica] = 2;
  shape[Axis::kFsdp] = world().size() / 2;
  const Mesh mesh(world(), shape, {});
  const Tensor a = Tensor::zeros({20'011}, DType::kF32, stream_, Owner::kBuffers);
  const Tensor b = Tensor::zeros({20'011}, DType::kF32, stream_, Owner::kBuffers);
  std::fill_n(a.data<float>(), a.numel(), 1.0f);
  std::fill_n(b.data<float>(), b.numel(), 1.0f);

  Ticket over_replica = mesh.along(Axis::kReplica).all_reduce({&a, 1}, stream_);
  Ticket over_fsdp = mesh.along(Axis::kFsdp).all_reduce({&b, 1}, stream_);
  // Half the ranks wait for one first, half for the other: each must let the other advance.
  (world().rank() % 2 == 0 ? over_replica : over_fsdp).wait(stream_);
  (world().rank() % 2 == 0 ? over_fsdp : over_replica).wait(stream_);

  EXPECT_EQ(a.data<float>()[20'010], 2.0f);
  EXPECT_EQ(b.data<float>()[20'010], static_cast<float>(world().size()) / 2);
}

TEST_F(MeshOverRanks, RefusesWhatItDoesNotHave) {
  MeshShape shape;
  shape[Axis::kFsdp] = world().size() + 1;
  EXPECT_THROW(Mesh(world(), shape, {}), Error);

  if (world().size() != 8) return;  // a product that is not everyone takes three axes
  shape.extent = {2, 1, 2, 1, 1, 2};
  const std::vector<AxisSet> asked{{Axis::kFsdp, Axis::kTensor}};
  const Mesh mesh(world(), shape, asked);
  EXPECT_EQ(mesh.over({Axis::kFsdp, Axis::kTensor, Axis::kStage}).name(), "fsdp x tensor");
  EXPECT_EQ(mesh.over(kDataAxes).name(), "replica x fsdp");
  EXPECT_EQ(mesh.world().name(), "world");
  EXPECT_THROW(mesh.over({Axis::kReplica, Axis::kTensor}), Error);
}

TEST_F(MeshOverRanks, FindsOneNodeAndRehearsesMore) {
  const Topology found = Topology::discover(world(), 0), two = Topology::discover(world(), 2);

  EXPECT_EQ(found.node_count, 1);
  EXPECT_EQ(found.world_rank, world().rank());
  EXPECT_EQ(found.local_size, world().size());
  EXPECT_EQ(two.node_count, 2);
  EXPECT_EQ(two.local_size, world().size() / 2);
  EXPECT_EQ(two.node, world().rank() / two.local_size);
  EXPECT_THROW(Topology::discover(world(), world().size() + 1), ConfigError);
}

TEST(Mesh, TellsAllRanksOfAGroupWhoseRanksCalledOtherOperations) {
  MeshShape shape;
  shape[Axis::kReplica] = 2;
  shape[Axis::kFsdp] = world().size() / 2;
  if (shape.size() != world().size() || shape[Axis::kFsdp] < 2) return;  // two groups need four ranks
  const Mesh mesh(world(), shape, {});
  Allocator pool{Device{}};
  Stream stream(pool);
  EXPECT_NO_THROW(mesh.check_same_calls(world()));
  // As many bytes under another dtype: it completes, and is a fault.
  const bool odd = mesh.coord(Axis::kReplica) == 1 && mesh.coord(Axis::kFsdp) == 0;
  const DType dtype = odd ? DType::kF32 : DType::kF64;
  const std::int64_t own = odd ? 4 : 2;
  const Tensor send = Tensor::zeros({own}, dtype, stream, Owner::kBuffers),
               recv = Tensor::zeros({own * mesh.extent(Axis::kFsdp)}, dtype, stream, Owner::kBuffers);
  const Transfer transfer{send, recv};
  mesh.along(Axis::kFsdp).all_gather({&transfer, 1}, stream).wait(stream);
  EXPECT_THROW(mesh.check_same_calls(world()), SharedError);
}

}  // namespace
}  // namespace dew
