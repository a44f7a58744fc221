#include "train/action.h"

#include <gtest/gtest.h>

#include "base/check.h"

namespace dew {
namespace {

TEST(Program, PrintsChunkActAndMicrobatch) {
  EXPECT_EQ(to_text(sequential_program(2, false)), "0F0 0B0 0F1 0B1 0R1");
  EXPECT_EQ(to_text(sequential_program(2, true)), "0F0 0B0 0R0 0F1 0B1 0R1");
  EXPECT_EQ(to_text(split_backward_program(1, false)), "0F0 0I0 0W0 0R0");
}

TEST(Program, PassesItsCheckForEveryNumberOfMicrobatches) {
  for (int microbatches = 1; microbatches <= 5; ++microbatches) {
    for (bool each : {false, true}) {
      EXPECT_NO_THROW(check_program(sequential_program(microbatches, each), microbatches));
      EXPECT_NO_THROW(check_program(split_backward_program(microbatches, each), microbatches));
    }
  }
}

TEST(Program, IsRefusedWhenABackwardComesFirst) {
  EXPECT_THROW(check_program({{Act::kBackward, 0, 0}, {Act::kForward, 0, 0}, {Act::kReduceGrads, 0, 0}}, 1),
               Error);
}

TEST(Program, IsRefusedWhenDeferredWorkIsDropped) {
  EXPECT_THROW(
      check_program({{Act::kForward, 0, 0}, {Act::kBackwardInput, 0, 0}, {Act::kReduceGrads, 0, 0}}, 1),
      Error);
}

TEST(Program, IsRefusedWhenAMicrobatchIsMissing) {
  EXPECT_THROW(check_program(sequential_program(1, false), 2), Error);
}

TEST(Program, IsRefusedWithoutAReduction) {
  EXPECT_THROW(check_program({{Act::kForward, 0, 0}, {Act::kBackward, 0, 0}}, 1), Error);
}

}  // namespace
}  // namespace dew
