// topology.nodes rehearses nodes on this one: what may not cross them is refused, and the map says who does.
#include <gtest/gtest.h>

#include "system/run_folder.h"

namespace dew::testing {
namespace {

const char* const kTwoNodes = "topology: {nodes: 2}\nmesh: {fsdp: 4, across_nodes: [replica]}\n";

TEST(Topology, AnAxisThatMayNotCrossNodesIsRefusedWithTheNumbers) {
  const RunFolder run(kTwoNodes);
  const Outcome outcome = run.train(4);
  EXPECT_EQ(outcome.status, 2) << outcome.text();
  EXPECT_EQ(count_of(outcome.err, "dew_train: "), 1) << outcome.err;
  for (const char* part :
       {"mesh.across_nodes (line 8)", "fsdp", "groups of 4", "4 ranks on 2 nodes", "2 ranks a node"})
    EXPECT_TRUE(outcome.says(part)) << part << '\n' << outcome.err;
  EXPECT_FALSE(run.exists());
}

TEST(Topology, TheMapSaysWhoSitsWhereAndWhatCrosses) {
  const RunFolder run(kTwoNodes);
  const Outcome outcome = run.train(4, {"mesh.fsdp=2"});
  ASSERT_EQ(outcome.status, 0) << outcome.text();
  for (const char* part : {"2 nodes (rehearsed)", "replica 2 (across nodes) x fsdp 2 (within a node)",
                           "node 0: ranks 0-1", "node 1: ranks 2-3"})
    EXPECT_TRUE(outcome.says(part)) << part << '\n' << outcome.out;
}

TEST(Topology, TheOrderDecidesWhatCrosses) {
  const RunFolder run(kTwoNodes);
  const std::string order = "mesh.order=[fsdp, stage, replica, expert, sequence, tensor]";
  EXPECT_EQ(run.train(4, {"mesh.fsdp=2", order}).status, 2);
  const Outcome outcome = run.train(4, {"mesh.fsdp=2", order, "mesh.across_nodes=[fsdp]"});
  EXPECT_EQ(outcome.status, 0) << outcome.text();
  EXPECT_TRUE(outcome.says("fsdp 2 (across nodes)")) << outcome.out;
}

TEST(Topology, RanksThatDoNotFillTheNodesAreRefused) {
  const RunFolder run;
  const Outcome outcome = run.train(3, {"topology.nodes=4"});
  EXPECT_EQ(outcome.status, 2) << outcome.text();
  EXPECT_TRUE(outcome.says("topology.nodes")) << outcome.err;
  EXPECT_FALSE(run.exists());
}

TEST(Topology, RehearsedNodesChangeNoBit) {
  const RunFolder one(kTwoNodes), two(kTwoNodes);
  ASSERT_EQ(one.train(4, {"mesh.fsdp=2", "topology.nodes=1"}).status, 0);
  ASSERT_EQ(two.train(4, {"mesh.fsdp=2"}).status, 0);
  EXPECT_EQ(difference_of(one.checkpoint(4), two.checkpoint(4)), "");
}

}  // namespace
}  // namespace dew::testing
