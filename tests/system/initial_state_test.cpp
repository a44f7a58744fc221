// run.steps 0 writes the initial state, which depends on no layout.
#include <gtest/gtest.h>

#include <algorithm>

#include "system/run_folder.h"

namespace dew::testing {
namespace {

const Words kInitial{"run.steps=0", "data.batch=24", "model.heads=4", "model.kv_heads=2"};

Words with(const Words& more) {
  Words all = kInitial;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(InitialState, IsTheSameBitsFromAnyRanksAndMesh) {
  const RunFolder one;
  const Outcome outcome = one.train(0, kInitial);
  ASSERT_EQ(outcome.status, 0) << outcome.text();
  ASSERT_EQ(one.checkpoint_names(), Words{"step_00000000.h5"});
  struct Case {
    int ranks;
    Words mesh;
  };
  for (const Case& c : {Case{2, {}}, Case{2, {"mesh.fsdp=2"}}, Case{3, {"mesh.fsdp=3", "layout.min_shard=1"}},
                        Case{8, {"mesh.fsdp=4"}}, Case{8, {"mesh.fsdp=8", "layout.min_shard=1"}}}) {
    const RunFolder other;
    const Outcome ended = other.train(c.ranks, with(c.mesh));
    ASSERT_EQ(ended.status, 0) << ended.text();
    EXPECT_EQ(difference_of(one.checkpoint(0), other.checkpoint(0)), "") << c.ranks;
  }
}

TEST(InitialState, DependsOnTheSeedAndHasMomentsOfZero) {
  const RunFolder one, other;
  ASSERT_EQ(one.train(0, kInitial).status, 0);
  ASSERT_EQ(other.train(0, with({"run.seed=8"})).status, 0);
  const std::string difference = difference_of(one.checkpoint(0), other.checkpoint(0));
  EXPECT_NE(difference.find("/params/embed.weight"), std::string::npos) << difference;
  for (const StoredTensor& tensor : tensors_of(one.checkpoint(0))) {
    const bool zero =
        std::all_of(tensor.bits.begin(), tensor.bits.end(), [](std::byte b) { return b == std::byte{0}; });
    EXPECT_EQ(zero, tensor.name.starts_with("/optimizer/")) << tensor.name;
  }
}

TEST(InitialState, IsWhereARunFromItBegins) {
  const RunFolder straight, two_parts;
  ASSERT_EQ(straight.train(2, {"mesh.fsdp=2"}).status, 0);
  ASSERT_EQ(two_parts.train(2, {"mesh.fsdp=2", "run.steps=0"}).status, 0);
  const Outcome outcome = two_parts.train(2, {"mesh.fsdp=2"});
  ASSERT_EQ(outcome.status, 0) << outcome.text();
  EXPECT_TRUE(outcome.says("step_00000000.h5 at step 0")) << outcome.out;
  EXPECT_EQ(straight.losses(), two_parts.losses());
  EXPECT_EQ(difference_of(straight.checkpoint(4), two_parts.checkpoint(4)), "");
}

}  // namespace
}  // namespace dew::testing
