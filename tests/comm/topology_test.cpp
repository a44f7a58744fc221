#include "comm/topology.h"

#include <gtest/gtest.h>

#include "base/check.h"

namespace dew {
namespace {

MeshShape mesh(int replica, int fsdp, int tensor) {
  MeshShape shape;
  shape[Axis::kReplica] = replica;
  shape[Axis::kFsdp] = fsdp;
  shape[Axis::kTensor] = tensor;
  return shape;
}

TEST(Topology, PutsRanksOfANodeSideBySide) {
  // A cyclic placement: even world ranks on one node, odd ones on the other.
  const std::vector<std::int64_t> node_of_world{7, 3, 7, 3, 7, 3};

  const Topology third = Topology::from_nodes(node_of_world, 2),
                 second = Topology::from_nodes(node_of_world, 1);

  EXPECT_EQ(third.world_rank, 1);
  EXPECT_EQ(third.node, 0);
  EXPECT_EQ(third.local_rank, 1);
  EXPECT_EQ(second.world_rank, 3);
  EXPECT_EQ(second.node, 1);
  EXPECT_EQ(second.local_rank, 0);
  EXPECT_EQ(second.local_size, 3);
  EXPECT_EQ(second.node_count, 2);
  EXPECT_EQ(second.node_of, (std::vector<int>{0, 0, 0, 1, 1, 1}));
  EXPECT_FALSE(second.rehearsed);
}

TEST(Topology, KnowsUnequalNodes) {
  const std::vector<std::int64_t> node_of_world{0, 0, 1};

  const Topology topology = Topology::from_nodes(node_of_world, 2);

  EXPECT_FALSE(topology.equal_nodes());
  EXPECT_TRUE(Topology::uniform(0, 6, 3).equal_nodes());
  EXPECT_EQ(topology.local_size, 1);
}

TEST(Topology, RehearsesEqualNodes) {
  const Topology topology = Topology::uniform(5, 8, 2);

  EXPECT_EQ(topology.node, 1);
  EXPECT_EQ(topology.local_rank, 1);
  EXPECT_EQ(topology.local_size, 4);
  EXPECT_TRUE(topology.rehearsed);
}

TEST(Topology, RefusesNodesThatDoNotDivideWithTheNumbers) {
  try {
    Topology::uniform(0, 8, 3);
    FAIL() << "3 nodes for 8 ranks went through";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.messages().at(0),
              "topology.nodes: 3 does not divide the 8 ranks into equal nodes; accepted: 1, 2, 4, 8");
  }
  EXPECT_THROW(Topology::uniform(0, 8, 16), ConfigError);
}

TEST(AxesAcrossNodes, AreThoseWhoseGroupsLeaveANode) {
  const Topology topology = Topology::uniform(0, 8, 2);

  EXPECT_EQ(axes_across_nodes(mesh(2, 4, 1), topology), AxisSet{Axis::kReplica});
  EXPECT_EQ(axes_across_nodes(mesh(1, 8, 1), topology), AxisSet{Axis::kFsdp});
  EXPECT_EQ(axes_across_nodes(mesh(1, 2, 4), topology), AxisSet{Axis::kFsdp});
  EXPECT_EQ(axes_across_nodes(mesh(8, 1, 1), Topology::uniform(0, 8, 1)), AxisSet{});
}

TEST(AxesAcrossNodes, FindsAGroupThatStraddlesABoundary) {
  // Nodes of 3 ranks cut the second pair of tensor neighbours.
  EXPECT_TRUE(axes_across_nodes(mesh(1, 3, 2), Topology::uniform(0, 6, 2)).has(Axis::kTensor));
}

TEST(CrossingErrors, NameTheAxisAndTheNumbers) {
  const Topology topology = Topology::uniform(0, 8, 4);

  const auto errors = crossing_errors(mesh(2, 1, 4), topology, {Axis::kReplica, Axis::kFsdp});

  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(
      errors[0],
      "mesh.tensor: its groups of 4 spread over 4 neighbouring ranks and would cross nodes (8 ranks on 4 "
      "nodes, "
      "2 ranks a node); make it smaller, move it inwards in mesh.order, or add tensor to mesh.across_nodes "
      "(now: replica, fsdp)");
  EXPECT_TRUE(crossing_errors(mesh(2, 1, 4), Topology::uniform(0, 8, 2), {Axis::kReplica}).empty());
}

TEST(CrossingErrors, RefuseGroupsThatStraddleNodes) {
  const Topology threes = Topology::uniform(0, 6, 2);
  const AxisSet all = kEveryAxis;

  ASSERT_EQ(crossing_errors(mesh(3, 2, 1), threes, all).size(), 2u);
  EXPECT_EQ(
      crossing_errors(mesh(3, 2, 1), threes, all)[1],
      "mesh.fsdp: its groups of 2 spread over 2 neighbouring ranks and would straddle nodes of 3 ranks; "
      "accepted: sizes that divide a node or fill whole nodes");
  EXPECT_TRUE(crossing_errors(mesh(2, 3, 1), threes, all).empty());
  EXPECT_TRUE(crossing_errors(mesh(1, 6, 1), threes, all).empty());
  EXPECT_TRUE(crossing_errors(mesh(1, 4, 2), Topology::uniform(0, 8, 2), all).empty());
}

TEST(Explain, ShowsExtentsAndNodes) {
  EXPECT_EQ(explain(mesh(2, 4, 1), Topology::uniform(0, 8, 2)),
            "mesh: replica 2 (across nodes) x fsdp 4 (within a node), 8 ranks on 2 nodes (rehearsed)\n"
            "node 0: ranks 0-3  replica 0, fsdp 0-3\n"
            "node 1: ranks 4-7  replica 1, fsdp 0-3\n");
}

TEST(Explain, ShowsBothEndsWhereANodeHoldsNoProduct) {
  EXPECT_EQ(explain(mesh(1, 3, 2), Topology::uniform(0, 6, 2)),
            "mesh: fsdp 3 (across nodes) x tensor 2 (across nodes), 6 ranks on 2 nodes (rehearsed)\n"
            "node 0: ranks 0-2  from fsdp 0, tensor 0 to fsdp 1, tensor 0\n"
            "node 1: ranks 3-5  from fsdp 1, tensor 1 to fsdp 2, tensor 1\n");
}

TEST(Explain, ShortensManyNodes) {
  EXPECT_EQ(
      explain(mesh(64, 8, 8), Topology::uniform(0, 4096, 512)),
      "mesh: replica 64 (across nodes) x fsdp 8 (across nodes) x tensor 8 (within a node), 4096 ranks on 512 "
      "nodes (rehearsed)\n"
      "node   0: ranks 0-7        replica 0, fsdp 0, tensor 0-7\n"
      "node   1: ranks 8-15       replica 0, fsdp 1, tensor 0-7\n"
      "node   2: ranks 16-23      replica 0, fsdp 2, tensor 0-7\n"
      "...\n"
      "node 511: ranks 4088-4095  replica 63, fsdp 7, tensor 0-7\n");
}

TEST(Explain, IsShortForOneRank) {
  EXPECT_EQ(explain({}, {}), "mesh: 1 rank on 1 node\n");
}

}  // namespace
}  // namespace dew
