#include "train/schedules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "train/schedule_programs.h"

namespace dew {
namespace {

// Times are sums of small whole numbers: shares differ from their formulas by roundings of one division.
constexpr double kRounding = 1e-14;

std::vector<int> stage_counts() {
  return {1, 2, 3, 4, 5, 6, 7, 8, 16, 64};
}
std::vector<int> microbatch_counts() {
  std::vector<int> counts(16);
  std::iota(counts.begin(), counts.end(), 1);
  counts.insert(counts.end(), {33, 256});
  return counts;
}

template <class Check>
void for_all_shapes(int chunks, const Check& check) {
  for (int stages : stage_counts())
    if (stages > 1 || chunks == 1)
      for (int microbatches : microbatch_counts()) check(PipelineShape{stages, microbatches, chunks});
}

std::string texts(PipelineSchedule kind, const PipelineShape& shape) {
  std::string text;
  for (const Program& program : compute_programs(kind, shape)) text += to_text(program) + '\n';
  return text;
}

TEST(Schedules, OfGpipeArePrinted) {
  EXPECT_EQ(texts(PipelineSchedule::kGpipe, {2, 3, 1}),
            "0F0 0F1 0F2 0B0 0B1 0B2\n"
            "0F0 0F1 0F2 0B0 0B1 0B2\n");
}

TEST(Schedules, OfOneForwardOneBackwardArePrinted) {
  EXPECT_EQ(texts(PipelineSchedule::kOneFOneB, {3, 4, 1}),
            "0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3\n"
            "0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3\n"
            "0F0 0B0 0F1 0B1 0F2 0B2 0F3 0B3\n");
}

TEST(Schedules, OfTwoChunksArePrinted) {
  EXPECT_EQ(texts(PipelineSchedule::kInterleaved, {2, 4, 2}),
            "0F0 0F1 1F0 1F1 0F2 1B0 0F3 1B1 1F2 0B0 1F3 0B1 1B2 1B3 0B2 0B3\n"
            "0F0 0F1 1F0 1B0 1F1 1B1 0F2 0B0 0F3 0B1 1F2 1B2 1F3 1B3 0B2 0B3\n");
}

TEST(Schedules, OfThreeMicrobatchesOnTwoStagesGoRoundTogether) {
  EXPECT_EQ(texts(PipelineSchedule::kInterleaved, {2, 3, 2}),
            "0F0 0F1 0F2 1F0 1F1 1F2 1B0 1B1 1B2 0B0 0B1 0B2\n"
            "0F0 0F1 0F2 1F0 1B0 1F1 1B1 1F2 1B2 0B0 0B1 0B2\n");
}

TEST(Schedules, OfTheZeroBubbleKindArePrinted) {
  EXPECT_EQ(texts(PipelineSchedule::kZeroBubble, {3, 4, 1}),
            "0F0 0F1 0F2 0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3\n"
            "0F0 0F1 0I0 0F2 0I1 0W0 0F3 0I2 0W1 0I3 0W2 0W3\n"
            "0F0 0I0 0F1 0I1 0F2 0I2 0W0 0F3 0I3 0W1 0W2 0W3\n");
}

TEST(Schedules, OfOneStageAreSequentialWhateverTheKind) {
  for (PipelineSchedule kind : kAllSchedules)
    EXPECT_EQ(to_text(compute_program(kind, {1, 3, 1}, 0)), "0F0 0B0 0F1 0B1 0F2 0B2");
  EXPECT_EQ(to_text(split_backward({1, 2, 1}, 0)), "0F0 0I0 0W0 0F1 0I1 0W1");
}

TEST(Schedules, OfOneChunkInterleaveNothing) {
  EXPECT_EQ(texts(PipelineSchedule::kInterleaved, {3, 5, 1}), texts(PipelineSchedule::kOneFOneB, {3, 5, 1}));
}

TEST(Schedules, OfGpipeHoldEveryMicrobatchAndWaitAsTheFormulaSays) {
  for_all_shapes(1, [](const PipelineShape& shape) {
    if (shape.stages == 1) return;
    const ScheduleReport report = report_of(PipelineSchedule::kGpipe, shape);

    for (int live : report.peak_live) ASSERT_EQ(live, shape.microbatches);
    const double waits = shape.stages - 1;
    ASSERT_NEAR(report.bubble(), waits / (shape.microbatches + waits), kRounding);
  });
}

TEST(Schedules, OfOneForwardOneBackwardHoldAsManyAsStagesFollow) {
  for_all_shapes(1, [](const PipelineShape& shape) {
    const ScheduleReport report = report_of(PipelineSchedule::kOneFOneB, shape);

    for (int s = 0; s < shape.stages; ++s)
      ASSERT_EQ(report.peak_live[static_cast<std::size_t>(s)],
                std::min(shape.microbatches, shape.stages - s));
    const double waits = shape.stages - 1;
    ASSERT_NEAR(report.bubble(), waits / (shape.microbatches + waits), kRounding);
  });
}

TEST(Schedules, OfTheZeroBubbleKindHoldNoMoreThanTheFullestStageOfOneForwardOneBackward) {
  for_all_shapes(1, [](const PipelineShape& shape) {
    if (shape.stages == 1) return;
    const ScheduleReport report = report_of(PipelineSchedule::kZeroBubble, shape);

    const int fullest = std::min(shape.microbatches, shape.stages);
    for (int s = 0; s < shape.stages; ++s) {
      ASSERT_EQ(report.peak_live[static_cast<std::size_t>(s)], fullest);
      ASSERT_EQ(report.peak_deferred[static_cast<std::size_t>(s)], std::min(shape.microbatches, s + 1));
    }
    // Until its I, a microbatch is held as long as until its B under 1F1B.
    for (int s = 0; s < shape.stages; ++s) {
      int before_input = 0, peak = 0;
      for (const Action& action : zero_bubble(shape, s)) {
        if (action.act == Act::kForward) peak = std::max(peak, ++before_input);
        if (action.act == Act::kBackwardInput) --before_input;
      }
      ASSERT_EQ(peak, std::min(shape.microbatches, shape.stages - s));
    }
  });
}

TEST(Schedules, OfTheZeroBubbleKindWaitAThirdOfOneForwardOneBackward) {
  for_all_shapes(1, [](const PipelineShape& shape) {
    if (shape.stages == 1) return;
    const ScheduleReport split = report_of(PipelineSchedule::kZeroBubble, shape);

    ASSERT_LT(split.bubble(), report_of(PipelineSchedule::kOneFOneB, shape).bubble());
    const double waits = split.seconds - 3 * shape.microbatches;
    const double short_of_stages = std::max(0, shape.stages - shape.microbatches);
    ASSERT_NEAR(waits, shape.stages - 1 + short_of_stages, kRounding);
  });
}

// arXiv:2401.10241, table 2; where W is the longest, the first and last microbatches still pass every stage.
TEST(Schedules, OfTheZeroBubbleKindWaitAsThePaperSaysForOtherTimes) {
  const std::vector<ActionTimes> all{{4, 5, 3}, {2, 3, 1}, {2, 2, 1}, {2, 2, 3}, {5, 6, 4}};
  for (const ActionTimes& times : all) {
    for (const PipelineShape& shape : {PipelineShape{2, 2, 1}, {4, 7, 1}, {8, 8, 1}, {8, 33, 1}}) {
      const ScheduleReport report = check_schedule(lowered_programs(PipelineSchedule::kZeroBubble, shape),
                                                   shape, std::vector<ActionTimes>{times});

      const double busy = shape.microbatches * (times.forward + times.input + times.weight);
      const double wait = std::max({times.forward, times.input, times.forward + times.input - times.weight});
      EXPECT_DOUBLE_EQ(report.seconds - busy, (shape.stages - 1) * wait);
    }
  }
}

TEST(Schedules, OfSeveralChunksWaitLessForAnyNumberOfMicrobatches) {
  for (int chunks = 2; chunks <= 4; ++chunks) {
    for_all_shapes(chunks, [](const PipelineShape& shape) {
      const ScheduleReport report = report_of(PipelineSchedule::kInterleaved, shape);

      const int groups = std::max(1, shape.microbatches / shape.stages);
      const int largest = (shape.microbatches + groups - 1) / groups;
      for (int s = 0; s < shape.stages; ++s)
        ASSERT_EQ(report.peak_live[static_cast<std::size_t>(s)],
                  std::min(shape.microbatches * shape.chunks,
                           2 * (shape.stages - 1 - s) + (shape.chunks - 1) * largest + 1));
      if (shape.microbatches < shape.stages) return;
      const double waits = shape.stages - 1;
      ASSERT_NEAR(report.bubble(), waits / (shape.chunks * shape.microbatches + waits), kRounding);
      const double of_one_chunk =
          report_of(PipelineSchedule::kOneFOneB, {shape.stages, shape.microbatches, 1}).bubble();
      ASSERT_LT(report.bubble(), of_one_chunk);
    });
  }
}

TEST(Schedules, AreRefusedWithTheNumbersWhereTheyCannotRun) {
  EXPECT_EQ(schedule_obstacle(PipelineSchedule::kGpipe, {4, 8, 2}),
            "4 stages, 8 microbatches, 2 chunks a rank: only the interleaved schedule has several chunks");
  EXPECT_EQ(schedule_obstacle(PipelineSchedule::kInterleaved, {1, 8, 2}),
            "1 stage, 8 microbatches, 2 chunks a rank: one stage has one chunk");
  EXPECT_EQ(schedule_obstacle(PipelineSchedule::kOneFOneB, {2, 0, 1}),
            "2 stages, 0 microbatches, 1 chunk a rank: each must be at least 1");
  EXPECT_EQ(schedule_obstacle(PipelineSchedule::kInterleaved, {4, 3, 5}), "");

  EXPECT_THROW(compute_program(PipelineSchedule::kZeroBubble, {4, 8, 2}, 0), Error);
  EXPECT_THROW(compute_program(PipelineSchedule::kGpipe, {4, 8, 1}, 4), Error);
  EXPECT_THROW(sequential({2, 8, 1}, 0), Error);
}

}  // namespace
}  // namespace dew
