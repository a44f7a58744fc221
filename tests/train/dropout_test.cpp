// What a step draws: by the step, and never while evaluating.
#include <gtest/gtest.h>

#include "train/tiny_run.h"

namespace dew {
namespace {

using testing::TinyRun;

TEST(Draws, ChangeWithTheStepAndTheSeedAlone) {
  TinyRun run({"accumulate=2"}), other({"run.seed=4"});
  const auto draws = [](TinyRun& of, std::int64_t step, std::size_t microbatch) {
    return of.feed().step(step, {}, of.stream()).microbatches.at(microbatch).draws;
  };
  ASSERT_TRUE(draws(run, 0, 0).has_value());
  EXPECT_EQ(draws(run, 0, 0), draws(run, 0, 1)) << "rows tell microbatches apart";
  EXPECT_EQ(draws(run, 5, 0), draws(run, 5, 0));
  EXPECT_NE(draws(run, 0, 0), draws(run, 1, 0));
  EXPECT_NE(draws(run, 0, 0), draws(other, 0, 0));
  EXPECT_FALSE(run.feed().validation(0, {}, run.stream()).draws.has_value());
}

TEST(Dropout, ChangesTrainingAndNoEvaluation) {
  TinyRun plain({}), dropping({"model.dropout=0.3"});
  const auto evaluated = [](TinyRun& run) {
    return run.engine().evaluate(run.feed().validation(0, run.engine().token_placements(), run.stream()));
  };
  EXPECT_EQ(evaluated(plain), evaluated(dropping));
  EXPECT_NE(plain.step(1).loss, dropping.step(1).loss);
}

}  // namespace
}  // namespace dew
