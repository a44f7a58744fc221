#include "train/lr_schedule.h"

#include <gtest/gtest.h>

#include "train/grad_norm.h"

namespace dew {
namespace {

constexpr double kPeak = 2e-3;
constexpr double kRounding = 1e-15;  // a handful of operations on numbers near 1e-3

ScheduleSection schedule(ScheduleKind kind, std::int64_t warmup, double final_share) {
  ScheduleSection section;
  section.kind = kind;
  section.warmup = warmup;
  section.final_share = final_share;
  return section;
}

TEST(LearningRate, RisesLinearlyAndReachesThePeakAtTheEndOfTheWarmUp) {
  const ScheduleSection s = schedule(ScheduleKind::kCosine, 10, 0.1);
  EXPECT_NEAR(learning_rate(s, kPeak, 100, 1), kPeak / 10, kRounding);
  EXPECT_NEAR(learning_rate(s, kPeak, 100, 10), kPeak, kRounding);
}

TEST(LearningRate, EndsAtTheFinalShareAndStaysThere) {
  for (ScheduleKind kind : {ScheduleKind::kLinear, ScheduleKind::kCosine}) {
    const ScheduleSection s = schedule(kind, 10, 0.1);
    EXPECT_NEAR(learning_rate(s, kPeak, 100, 100), 0.1 * kPeak, kRounding);
    EXPECT_NEAR(learning_rate(s, kPeak, 100, 150), 0.1 * kPeak, kRounding);
  }
}

TEST(LearningRate, IsHalfWayDownInTheMiddle) {
  for (ScheduleKind kind : {ScheduleKind::kLinear, ScheduleKind::kCosine}) {
    const ScheduleSection s = schedule(kind, 0, 0.2);
    EXPECT_NEAR(learning_rate(s, kPeak, 100, 50), 0.6 * kPeak, kRounding);
  }
  EXPECT_NEAR(learning_rate(schedule(ScheduleKind::kCosine, 0, 0), kPeak, 100, 25),
              kPeak * 0.85355339059327373, kRounding);
}

TEST(LearningRate, StaysAtThePeakWhenConstant) {
  EXPECT_EQ(learning_rate(schedule(ScheduleKind::kConstant, 0, 0.1), kPeak, 100, 100), kPeak);
}

TEST(LearningRate, SurvivesAWarmUpAsLongAsTheRun) {
  EXPECT_NEAR(learning_rate(schedule(ScheduleKind::kLinear, 100, 0), kPeak, 100, 100), kPeak, kRounding);
}

TEST(ClipFactor, BringsALargeNormToTheLimitAndLeavesASmallOne) {
  EXPECT_EQ(clip_factor(4, 1), 0.25);
  EXPECT_EQ(clip_factor(0.5, 1), 1);
  EXPECT_EQ(clip_factor(0, 1), 1);
}

}  // namespace
}  // namespace dew
