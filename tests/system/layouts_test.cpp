// Training does not depend on the layout: the first losses agree within rounding.
#include <gtest/gtest.h>

#include "system/run_folder.h"

namespace dew::testing {
namespace {

// The same sums in another order: some roundings of 6e-8 (f32) or 1e-16 (f64) a step, amplified over twenty
// steps.
constexpr double kF32Distance = 1e-5, kF64Distance = 1e-12;

struct Case {
  int ranks;
  Words assignments;
};

const std::vector<Case> kLayouts{
    {4, {"mesh.replica=2", "mesh.fsdp=2"}},
    {4, {"mesh.fsdp=4", "layout.min_shard=1", "recompute=full"}},
    {4, {"accumulate=3", "mesh.fsdp=2", "layout.reduce=microbatch"}},
    {4, {"mesh.stage=2", "mesh.tensor=2", "pipeline.microbatches=3"}},
};

void expect_same_training(const Words& precision, double distance) {
  const char* settings =
      "optimizer: {lr: 0.003, clip: 1.0, betas: [0.9, 0.95]}\nschedule: {kind: cosine, warmup: 5}\n"
      "eval: {every: 10}\n";
  const RunFolder one(settings);
  Words steps = precision;
  steps.emplace_back("run.steps=20");
  ASSERT_EQ(one.train(0, steps).status, 0);
  ASSERT_EQ(one.losses().size(), 20u);
  EXPECT_LT(one.losses().back(), 0.97 * one.losses().front()) << "it learns, so that the update matters";
  for (const Case& c : kLayouts) {
    const RunFolder other(settings);
    Words all = steps;
    all.insert(all.end(), c.assignments.begin(), c.assignments.end());
    const Outcome outcome = other.train(c.ranks, all);
    ASSERT_EQ(outcome.status, 0) << outcome.text();
    EXPECT_LE(relative_distance(other.losses(), one.losses()), distance) << c.assignments.front();
    EXPECT_LE(relative_distance({other.metrics().back()["val_loss"]}, {one.metrics().back()["val_loss"]}),
              distance);
  }
}

TEST(Layouts, TrainAlikeInF32) {
  expect_same_training({}, kF32Distance);
}

TEST(Layouts, TrainAlikeInF64) {
  expect_same_training(f64_with(), kF64Distance);
}

}  // namespace
}  // namespace dew::testing
