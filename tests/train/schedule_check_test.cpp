#include "train/schedule_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "base/check.h"
#include "train/schedule_programs.h"
#include "train/schedule_timeline.h"

namespace dew {
namespace {

constexpr PipelineShape kShape{3, 4, 1};

/// The words of the refusal; empty when the programs pass.
std::string refusal(const std::vector<Program>& programs, const PipelineShape& shape) {
  try {
    check_schedule(programs, shape, kUnitTimes);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::size_t place(const Program& program, const Action& action) {
  return static_cast<std::size_t>(std::find(program.begin(), program.end(), action) - program.begin());
}

void drop(Program& program, const Action& action) {
  program.erase(program.begin() + static_cast<std::ptrdiff_t>(place(program, action)));
}

void swap_actions(Program& program, const Action& one, const Action& other) {
  std::swap(program[place(program, one)], program[place(program, other)]);
}

TEST(ScheduleCheck, CountsTimeAndLiveMicrobatches) {
  const ScheduleReport report = report_of(PipelineSchedule::kZeroBubble, kShape);

  EXPECT_EQ(report.seconds, 14);
  EXPECT_EQ(report.busy, (std::vector<double>{12, 12, 12}));
  EXPECT_EQ(report.peak_live, (std::vector<int>{3, 3, 3}));
  EXPECT_EQ(report.peak_deferred, (std::vector<int>{1, 2, 3}));
  EXPECT_DOUBLE_EQ(report.bubble(), 2.0 / 14);
  EXPECT_EQ(report.most_live(), 3);
}

TEST(ScheduleCheck, TakesTheTimesOfEachStage) {
  const std::vector<Program> programs = lowered_programs(PipelineSchedule::kGpipe, {2, 2, 1});
  const std::vector<ActionTimes> times{{1, 2, 3}, {10, 20, 30}};

  const ScheduleReport report = check_schedule(programs, {2, 2, 1}, times);

  // Stage 1 starts at 1 and never waits; stage 0 ends with the second backward.
  EXPECT_EQ(report.seconds, 1 + 2 * 60 + 5);
  EXPECT_EQ(report.busy, (std::vector<double>{12, 120}));
}

TEST(Timeline, TakesEveryActionsOwnSeconds) {
  const PipelineShape shape{2, 2, 1};
  const std::vector<Program> programs = lowered_programs(PipelineSchedule::kGpipe, shape);
  std::vector<std::vector<double>> seconds;
  for (const Program& program : programs) seconds.emplace_back(program.size());
  const std::size_t second = place(programs[0], {Act::kForward, 0, 1});
  const std::size_t sent = place(programs[0], {Act::kSendForward, 0, 1});
  seconds[0][place(programs[0], {Act::kForward, 0, 0})] = 2;
  seconds[0][second] = 20;
  seconds[0][sent] = 5;

  const Timeline timeline = play(programs, shape, seconds);

  // Nothing else takes time, so that stage 1 waits for the send.
  EXPECT_EQ(timeline[0][second].start, 2);
  EXPECT_EQ(timeline[0][sent].end, 27);
  EXPECT_EQ(timeline[1][place(programs[1], {Act::kForward, 0, 1})].start, 27);
  seconds[1].pop_back();
  EXPECT_THROW(play(programs, shape, seconds), Error);
}

TEST(ScheduleCheck, RefusesADroppedAction) {
  const std::vector<Program> whole = lowered_programs(PipelineSchedule::kZeroBubble, kShape);
  for (std::size_t s = 0; s < whole.size(); ++s) {
    for (std::size_t i = 0; i < whole[s].size(); ++i) {
      std::vector<Program> programs = whole;
      const Action action = whole[s][i];
      programs[s].erase(programs[s].begin() + static_cast<std::ptrdiff_t>(i));

      const std::string words = refusal(programs, kShape);

      // A reduction notices first that the W it belongs to is gone.
      const bool last_weight = action == Action{Act::kBackwardWeight, 0, 3};
      const std::string expected =
          last_weight ? "misplaced: 0R3 is not directly behind" : "missing: " + to_text(action);
      EXPECT_TRUE(has(words, expected)) << to_text(action) << '\n' << words;
      EXPECT_TRUE(has(words, "stage " + std::to_string(s) + ":") && has(words, "<-- here")) << words;
    }
  }
}

TEST(ScheduleCheck, RefusesADoubledAction) {
  const std::vector<Program> whole = lowered_programs(PipelineSchedule::kInterleaved, {2, 3, 2});
  for (std::size_t s = 0; s < whole.size(); ++s) {
    for (std::size_t i = 0; i < whole[s].size(); ++i) {
      std::vector<Program> programs = whole;
      programs[s].insert(programs[s].begin() + static_cast<std::ptrdiff_t>(i), whole[s][i]);

      const std::string words = refusal(programs, {2, 3, 2});

      EXPECT_TRUE(has(words, "duplicate: a second " + to_text(whole[s][i]))) << words;
    }
  }
}

TEST(ScheduleCheck, RefusesTwoKindsOfBackwardOfOneMicrobatch) {
  std::vector<Program> programs{{{Act::kForward, 0, 0},
                                 {Act::kBackwardInput, 0, 0},
                                 {Act::kBackward, 0, 0},
                                 {Act::kReduceGrads, 0, 0}}};

  EXPECT_TRUE(has(refusal(programs, {1, 1, 1}), "duplicate: 0B0 behind another backward"));
}

TEST(ScheduleCheck, RefusesMicrobatchesOutOfOrder) {
  std::vector<Program> programs = lowered_programs(PipelineSchedule::kZeroBubble, kShape);
  swap_actions(programs[2], {Act::kBackwardWeight, 0, 1}, {Act::kBackwardWeight, 0, 2});

  EXPECT_EQ(refusal(programs, kShape),
            "pipeline program: out of order: 0W2 before 0W1\n"
            "  stage 2: ... 0F2 0I2 0SB2 0RF3 0W0 0F3 0I3 0SB3 0W2 <-- here 0W1 0W3 0R3");
}

// A later B adds its weight gradients before an earlier W: other bits.
TEST(ScheduleCheck, RefusesAWholeBackwardBeforeAnEarlierWeightGradient) {
  std::vector<Program> programs{{{Act::kForward, 0, 0},
                                 {Act::kForward, 0, 1},
                                 {Act::kBackwardInput, 0, 0},
                                 {Act::kBackward, 0, 1},
                                 {Act::kReduceGrads, 0, 1},
                                 {Act::kBackwardWeight, 0, 0}}};

  EXPECT_TRUE(has(refusal(programs, {1, 2, 1}), "out of order: 0B1 before 0W0"));
}

TEST(ScheduleCheck, RefusesWhatComesBeforeWhatItNeeds) {
  const auto swapped = [](std::size_t stage, const Action& one, const Action& other) {
    std::vector<Program> programs = lowered_programs(PipelineSchedule::kZeroBubble, kShape);
    swap_actions(programs[stage], one, other);
    return refusal(programs, kShape);
  };

  EXPECT_TRUE(
      has(swapped(2, {Act::kForward, 0, 0}, {Act::kBackwardInput, 0, 0}), "out of order: 0I0 before 0F0"));
  EXPECT_TRUE(has(swapped(0, {Act::kBackwardInput, 0, 0}, {Act::kBackwardWeight, 0, 0}),
                  "out of order: 0W0 before 0I0"));
  EXPECT_TRUE(
      has(swapped(1, {Act::kForward, 0, 1}, {Act::kSendForward, 0, 1}), "out of order: 0SF1 before 0F1"));
  EXPECT_TRUE(has(swapped(1, {Act::kBackwardInput, 0, 1}, {Act::kSendBackward, 0, 1}),
                  "out of order: 0SB1 before 0I1"));
  EXPECT_TRUE(
      has(swapped(1, {Act::kRecvForward, 0, 1}, {Act::kForward, 0, 1}), "out of order: 0F1 before 0RF1"));
  EXPECT_TRUE(has(swapped(0, {Act::kRecvBackward, 0, 3}, {Act::kBackwardInput, 0, 3}),
                  "out of order: 0I3 before 0RB3"));
}

TEST(ScheduleCheck, RefusesAReceiveThatMeetsAnotherSend) {
  std::vector<Program> programs = lowered_programs(PipelineSchedule::kOneFOneB, kShape);
  swap_actions(programs[1], {Act::kRecvForward, 0, 0}, {Act::kRecvForward, 0, 1});

  EXPECT_EQ(refusal(programs, kShape),
            "pipeline program: mismatch: 0RF1 meets 0SF0 of stage 0, both number 0 of their pair\n"
            "  stage 0: 0F0 0SF0 <-- here 0F1 0SF1 0RB0 0F2 0SF2 0B0 0RB1 0F3 ...\n"
            "  stage 1: 0RF1 <-- here 0RF0 0F0 0SF0 0RB0 0F1 0SF1 0RF2 0B0 ...");
}

// Between two stages activations and gradients share a pair.
TEST(ScheduleCheck, RefusesGradientsReceivedForActivations) {
  const PipelineShape shape{2, 4, 2};
  std::vector<Program> programs = lowered_programs(PipelineSchedule::kInterleaved, shape);
  ASSERT_EQ(refusal(programs, shape), "");
  // Stage 0 sends 1SF1 .. 0SF2 1SB0: stage 1 posts the gradient's receive before an activation's.
  const std::size_t backward = place(programs[1], {Act::kRecvBackward, 0, 0});
  const auto forward =
      std::find_if(programs[1].rend() - static_cast<std::ptrdiff_t>(backward), programs[1].rend(),
                   [](const Action& action) { return action.act == Act::kRecvForward; });
  ASSERT_NE(forward, programs[1].rend());
  std::swap(programs[1][backward], *forward);

  const std::string words = refusal(programs, shape);

  EXPECT_TRUE(has(words, "mismatch: 0RB0 meets ")) << words;
}

TEST(ScheduleCheck, RefusesAReductionThatIsMissingOrElsewhere) {
  std::vector<Program> missing = lowered_programs(PipelineSchedule::kOneFOneB, kShape);
  std::vector<Program> late = missing, other = missing;
  const Action reduction{Act::kReduceGrads, 0, 3};
  drop(missing[1], reduction);
  swap_actions(late[1], reduction, {Act::kSendBackward, 0, 3});
  other[1][place(other[1], reduction)].microbatch = 2;

  EXPECT_TRUE(has(refusal(missing, kShape), "missing: 0R3"));
  EXPECT_TRUE(has(refusal(late, kShape), "misplaced: 0R3 is not directly behind"));
  EXPECT_TRUE(has(refusal(other, kShape), "misplaced: 0R2 is not directly behind"));
}

TEST(ScheduleCheck, RefusesTransfersBeyondTheChainAndIndicesBeyondTheShape) {
  const std::vector<Program> whole = lowered_programs(PipelineSchedule::kOneFOneB, kShape);
  const auto with = [&](std::size_t stage, const Action& action) {
    std::vector<Program> programs = whole;
    programs[stage].push_back(action);
    return refusal(programs, kShape);
  };

  EXPECT_TRUE(has(with(2, {Act::kSendForward, 0, 0}), "misplaced: 0SF0 of virtual stage 2 of 3 has no"));
  EXPECT_TRUE(has(with(0, {Act::kRecvForward, 0, 0}), "misplaced: 0RF0 of virtual stage 0 of 3 has no"));
  EXPECT_TRUE(has(with(0, {Act::kForward, 1, 0}), "misplaced: 1F0 where chunks are below 1"));
  EXPECT_TRUE(has(with(0, {Act::kForward, 0, 4}), "microbatches below 4"));
  EXPECT_TRUE(has(with(0, {Act::kForward, 0, -1}), "misplaced: 0F-1"));
  EXPECT_THROW(check_schedule(whole, {4, 4, 1}, kUnitTimes), Error);
  EXPECT_THROW(check_schedule(whole, kShape, std::vector<ActionTimes>(2)), Error);
}

TEST(ScheduleCheck, NamesWhatEachStuckStageWaitsFor) {
  const PipelineShape shape{2, 2, 1};
  std::vector<Program> compute = compute_programs(PipelineSchedule::kOneFOneB, shape);
  // Stage 0 wants its first gradient before the second forward, stage 1 both forwards before any backward.
  compute[0] = one_f_one_b({1, 2, 1}, 0);
  compute[1] = gpipe(shape, 1);

  EXPECT_EQ(refusal(lower(compute, shape, false), shape),
            "pipeline program: deadlock\n"
            "  stage 0 waits at 0B0 for 0SB0 of stage 1\n"
            "    stage 0: 0RB0 0F0 0SF0 0B0 <-- here 0RB1 0F1 0SF1 0B1 0R1\n"
            "  stage 1 waits at 0F1 for 0SF1 of stage 0\n"
            "    stage 1: 0RF0 0RF1 0F0 0F1 <-- here 0B0 0SB0 0B1 0R1 0SB1");
}

TEST(ScheduleCheck, RefusesAnEvaluationThatRunsBackwardOrNotAtAll) {
  const PipelineShape shape{2, 1, 1};
  EXPECT_THROW(check_evaluation(lowered_programs(PipelineSchedule::kGpipe, shape), shape, kUnitTimes), Error);
  EXPECT_THROW(check_schedule(lowered_evaluation(shape), shape, kUnitTimes), Error);
  std::vector<Program> empty = lowered_evaluation(shape);
  empty[1].clear();
  EXPECT_THROW(check_evaluation(empty, shape, kUnitTimes), Error);
}

TEST(ScheduleCheck, PassesTheLargestPipelines) {
  for (PipelineSchedule kind : kAllSchedules) {
    const PipelineShape shape{64, 256, kind == PipelineSchedule::kInterleaved ? 4 : 1};
    EXPECT_EQ(refusal(lowered_programs(kind, shape, true), shape), "");
  }
}

// Two random actions of a stage change places: either the order did not matter or it is refused.
TEST(ScheduleCheck, PassesOrRefusesAnySwap) {
  constexpr unsigned kSeed = 11;
  std::mt19937 random(kSeed);
  int passed = 0, deadlocks = 0, refused = 0;
  for (int draw = 0; draw < 4000; ++draw) {
    const PipelineSchedule kind = kAllSchedules[random() % kAllSchedules.size()];
    const PipelineShape shape{
        2 + static_cast<int>(random() % 4), 1 + static_cast<int>(random() % 6),
        kind == PipelineSchedule::kInterleaved ? 2 + static_cast<int>(random() % 2) : 1};
    std::vector<Program> compute = compute_programs(kind, shape);
    const bool before_lowering = random() % 2 == 0;
    std::vector<Program> lowered = before_lowering ? std::vector<Program>{} : lower(compute, shape, false);
    Program& program = (before_lowering ? compute : lowered)[random() % compute.size()];
    const std::size_t i = random() % program.size();
    std::swap(program[i], program[std::min(program.size() - 1, i + 1 + random() % 6)]);
    if (before_lowering) lowered = lower(compute, shape, false);

    const std::string words = refusal(lowered, shape);

    ++(words.empty() ? passed : has(words, "deadlock") ? deadlocks : refused);
  }
  EXPECT_GT(passed, 100) << kSeed;
  EXPECT_GT(deadlocks, 20) << kSeed;
  EXPECT_GT(refused, 1000) << kSeed;
}

TEST(Drawing, HasARowAStageAndAColumnAUnitOfTime) {
  EXPECT_EQ(draw(lowered_programs(PipelineSchedule::kOneFOneB, {2, 3, 1}), {2, 3, 1}),
            "unit    0  1  2  3  4  5  6  7  8  9  10 11\n"
            "stage 0 F0 F1 .  .  B0 -  F2 B1 -  .  B2 -\n"
            "stage 1 .  F0 B0 -  F1 B1 -  F2 B2 -  .  .\n");
  EXPECT_EQ(draw(lowered_programs(PipelineSchedule::kZeroBubble, kShape), kShape),
            "unit    0  1  2  3  4  5  6  7  8  9  10 11 12 13\n"
            "stage 0 F0 F1 F2 .  .  I0 W0 F3 I1 W1 I2 W2 I3 W3\n"
            "stage 1 .  F0 F1 .  I0 F2 I1 W0 F3 I2 W1 I3 W2 W3\n"
            "stage 2 .  .  F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3\n");
  EXPECT_EQ(draw(lowered_evaluation({2, 1, 2}), {2, 1, 2}),
            "unit    0   1   2   3\n"
            "stage 0 0F0 .   1F0 .\n"
            "stage 1 .   0F0 .   1F0\n");
}

}  // namespace
}  // namespace dew
