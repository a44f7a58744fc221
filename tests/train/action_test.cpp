#include "train/action.h"

#include <gtest/gtest.h>

namespace dew {
namespace {

TEST(Program, PrintsChunkActAndMicrobatch) {
  Program program;
  for (int act = 0; act < kActCount; ++act) program.push_back({static_cast<Act>(act), act % 2, 10 + act});

  EXPECT_EQ(to_text(program), "0F10 1B11 0I12 1W13 0SF14 1RF15 0SB16 1RB17 0R18");
  EXPECT_EQ(to_text(Action{Act::kRecvBackward, 3, 255}), "3RB255");
  EXPECT_EQ(to_text(Program{}), "");
}

TEST(FarEnd, OfASendIsTheReceiveOfTheNextVirtualStage) {
  const PipelineShape shape{3, 4, 2};

  const auto beside = far_end(shape, 1, {Act::kSendForward, 0, 2});
  const auto around = far_end(shape, 2, {Act::kSendForward, 0, 2});
  const auto back = far_end(shape, 0, {Act::kSendBackward, 1, 3});

  ASSERT_TRUE(beside && around && back);
  EXPECT_EQ(beside->stage, 2);
  EXPECT_EQ(beside->action, (Action{Act::kRecvForward, 0, 2}));
  EXPECT_EQ(around->stage, 0);
  EXPECT_EQ(around->action, (Action{Act::kRecvForward, 1, 2}));
  EXPECT_EQ(back->stage, 2);
  EXPECT_EQ(back->action, (Action{Act::kRecvBackward, 0, 3}));
}

TEST(FarEnd, OfAFarEndIsTheActionItself) {
  for (int stages : {2, 3, 5}) {
    const PipelineShape shape{stages, 2, 3};
    int transfers = 0;
    for (int s = 0; s < stages; ++s) {
      for (int act = 0; act < kActCount; ++act) {
        for (int chunk = 0; chunk < shape.chunks; ++chunk) {
          const Action action{static_cast<Act>(act), chunk, 1};
          const auto there = far_end(shape, s, action);
          if (!there) continue;
          ++transfers;
          const auto back = far_end(shape, there->stage, there->action);
          ASSERT_TRUE(back);
          EXPECT_EQ(back->stage, s);
          EXPECT_EQ(back->action, action);
        }
      }
    }
    EXPECT_EQ(transfers, 4 * (shape.virtual_stages() - 1));  // two sends and two receives a seam
  }
}

TEST(FarEnd, IsNowhereAtTheEndsOfTheChainAndOnOneStage) {
  const PipelineShape shape{2, 1, 2};

  EXPECT_FALSE(far_end(shape, 0, {Act::kRecvForward, 0, 0}));
  EXPECT_FALSE(far_end(shape, 0, {Act::kSendBackward, 0, 0}));
  EXPECT_FALSE(far_end(shape, 1, {Act::kSendForward, 1, 0}));
  EXPECT_FALSE(far_end(shape, 1, {Act::kRecvBackward, 1, 0}));
  EXPECT_FALSE(far_end(shape, 0, {Act::kForward, 0, 0}));
  EXPECT_FALSE(far_end(shape, 0, {Act::kReduceGrads, 1, 0}));
  EXPECT_FALSE(far_end({1, 1, 1}, 0, {Act::kSendForward, 0, 0}));
}

}  // namespace
}  // namespace dew
