#include "train/lowering.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/check.h"
#include "train/schedule_programs.h"

namespace dew {
namespace {

std::string texts(const std::vector<Program>& programs) {
  std::string text;
  for (const Program& program : programs) text += to_text(program) + '\n';
  return text;
}

TEST(Lowering, OfOneStageAddsReductionsAlone) {
  const PipelineShape shape{1, 2, 1};
  const std::vector<Program> whole{sequential(shape, 0)}, split{split_backward(shape, 0)};

  EXPECT_EQ(texts(lower(whole, shape, false)), "0F0 0B0 0F1 0B1 0R1\n");
  EXPECT_EQ(texts(lower(whole, shape, true)), "0F0 0B0 0R0 0F1 0B1 0R1\n");
  EXPECT_EQ(texts(lower(split, shape, false)), "0F0 0I0 0W0 0F1 0I1 0W1 0R1\n");
  EXPECT_EQ(texts(lower(split, shape, true)), "0F0 0I0 0W0 0R0 0F1 0I1 0W1 0R1\n");
}

TEST(Lowering, SendsBehindTheActionAndReceivesOneActionAhead) {
  EXPECT_EQ(texts(lowered_programs(PipelineSchedule::kOneFOneB, {3, 3, 1})),
            "0F0 0SF0 0F1 0SF1 0RB0 0F2 0SF2 0RB1 0B0 0RB2 0B1 0B2 0R2\n"
            "0RF0 0RF1 0F0 0SF0 0RB0 0F1 0SF1 0RF2 0B0 0SB0 0RB1 0F2 0SF2 0RB2 0B1 0SB1 0B2 0R2 0SB2\n"
            "0RF0 0F0 0RF1 0B0 0SB0 0F1 0RF2 0B1 0SB1 0F2 0B2 0R2 0SB2\n");
}

TEST(Lowering, SendsInputGradientsBeforeTheWeightGradients) {
  EXPECT_EQ(texts(lowered_programs(PipelineSchedule::kZeroBubble, {2, 2, 1}, true)),
            "0F0 0SF0 0RB0 0F1 0SF1 0I0 0RB1 0W0 0R0 0I1 0W1 0R1\n"
            "0RF0 0F0 0RF1 0I0 0SB0 0F1 0I1 0SB1 0W0 0R0 0W1 0R1\n");
}

// Both directions between two stages carry activations and gradients: stage 1 sends 0SF1 before 1SB0 and
// stage 0 must receive so, though it needs them in its own order.
TEST(Lowering, ReceivesFromOneRankInTheOrderInWhichItSends) {
  EXPECT_EQ(
      texts(lowered_programs(PipelineSchedule::kInterleaved, {2, 2, 2})),
      "0F0 0SF0 1RF0 0F1 0SF1 1RF1 1F0 1SF0 1RB0 1F1 1SF1 1RB1 1B0 1SB0 0RB0 1B1 1R1 1SB1 0RB1 0B0 0B1 0R1\n"
      "0RF0 0RF1 0F0 0SF0 1RF0 0F1 0SF1 1F0 1RF1 1B0 1SB0 1F1 0RB0 1B1 1R1 1SB1 0RB1 0B0 0SB0 0B1 0R1 "
      "0SB1\n");
}

TEST(Lowering, PostsAMessageSentEarlyButNeededLateBeforeTheOthers) {
  const PipelineShape shape{2, 2, 1};
  const auto f = [](int m) { return Action{Act::kForward, 0, m}; };
  const auto b = [](int m) { return Action{Act::kBackward, 0, m}; };
  // Stage 0 runs the forwards in the reverse of the order in which stage 1 wants them.
  const std::vector<Program> compute{{f(1), f(0), b(0), b(1)}, {f(0), b(0), f(1), b(1)}};

  EXPECT_EQ(texts(lower(compute, shape, false)),
            "0F1 0SF1 0RB0 0F0 0SF0 0RB1 0B0 0B1 0R1\n"
            "0RF1 0RF0 0F0 0B0 0SB0 0F1 0B1 0R1 0SB1\n");
}

TEST(Lowering, KeepsTheOrderOfTheComputingActions) {
  for (PipelineSchedule kind : kAllSchedules) {
    const PipelineShape shape{4, 6, kind == PipelineSchedule::kInterleaved ? 3 : 1};
    const std::vector<Program> compute = compute_programs(kind, shape);

    std::vector<Program> lowered = lower(compute, shape, true);

    for (std::size_t s = 0; s < compute.size(); ++s) {
      std::erase_if(lowered[s], [](const Action& action) { return !computes(action.act); });
      EXPECT_EQ(to_text(lowered[s]), to_text(compute[s]));
    }
  }
}

TEST(Lowering, ReducesBehindEachBackwardOrBehindTheLastOfEachChunk) {
  for (PipelineSchedule kind : kAllSchedules) {
    const PipelineShape shape{3, 5, kind == PipelineSchedule::kInterleaved ? 2 : 1};
    for (bool each : {false, true}) {
      for (const Program& program : lowered_programs(kind, shape, each)) {
        const auto reductions = std::count_if(program.begin(), program.end(), [](const Action& action) {
          return action.act == Act::kReduceGrads;
        });
        EXPECT_EQ(reductions, shape.chunks * (each ? shape.microbatches : 1));
      }
    }
  }
}

TEST(Lowering, OfAnEvaluationPassesEveryChunkOnce) {
  EXPECT_EQ(texts(lowered_evaluation({1, 4, 1})), "0F0\n");
  EXPECT_EQ(texts(lowered_evaluation({3, 4, 1})),
            "0F0 0SF0\n"
            "0RF0 0F0 0SF0\n"
            "0RF0 0F0\n");
  EXPECT_EQ(texts(lowered_evaluation({2, 4, 2})),
            "1RF0 0F0 0SF0 1F0 1SF0\n"
            "0RF0 1RF0 0F0 0SF0 1F0\n");
  for (int stages = 2; stages <= 5; ++stages) {
    const PipelineShape shape{stages, 7, 3};
    const ScheduleReport report = check_evaluation(lowered_evaluation(shape), {stages, 1, 3}, kUnitTimes);
    EXPECT_EQ(report.seconds, shape.virtual_stages());
  }
}

TEST(Lowering, RefusesProgramsWhoseMessagesHaveNoOtherEnd) {
  const PipelineShape shape{2, 2, 1};
  const std::vector<Program> whole = compute_programs(PipelineSchedule::kOneFOneB, shape);
  for (std::size_t s = 0; s < whole.size(); ++s) {
    for (std::size_t i = 0; i < whole[s].size(); ++i) {
      std::vector<Program> damaged = whole;
      damaged[s].erase(damaged[s].begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_THROW(lower(damaged, shape, false), Error) << s << ' ' << i;
    }
  }
  EXPECT_THROW(lower(whole, {3, 2, 1}, false), Error);
  EXPECT_THROW(lower(whole, {2, 1, 1}, false), Error);
}

}  // namespace
}  // namespace dew
