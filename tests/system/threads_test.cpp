// The number of threads changes the time and no bit.
#include <gtest/gtest.h>

#include "system/run_folder.h"

namespace dew::testing {
namespace {

void expect_same_bits(const Words& assignments) {
  std::vector<double> first;
  std::string checkpoint;
  const RunFolder one, two;
  for (const RunFolder* run : {&one, &two}) {
    Launch launch = run->launch(0, assignments);
    launch.environment["OMP_NUM_THREADS"] = run == &one ? "1" : "2";
    const Outcome outcome = train(launch);
    ASSERT_EQ(outcome.status, 0) << outcome.text();
    EXPECT_TRUE(outcome.says(run == &one ? ", 1 thread a rank" : ", 2 threads a rank")) << outcome.out;
  }
  ASSERT_EQ(one.losses().size(), 10u);
  EXPECT_EQ(one.losses(), two.losses());
  EXPECT_EQ(difference_of(one.checkpoint(10), two.checkpoint(10)), "");
}

// Widths and rows that threads do not share evenly, and enough work that two take part.
const Words kOdd{"run.steps=10",    "model.width=66", "model.heads=3",     "model.mlp=97",
                 "data.seq_len=33", "data.batch=14",  "optimizer.clip=0.5"};

TEST(Threads, ChangeNoBitInF32) {
  expect_same_bits(kOdd);
}

TEST(Threads, ChangeNoBitInF64) {
  expect_same_bits(f64_with(kOdd));
}

}  // namespace
}  // namespace dew::testing
