// What ranks agree on at the end of a step: wishes, and whether loss and gradients are finite.
#include <gtest/gtest.h>

#include <limits>

#include "support/mpi_world.h"
#include "train/tiny_run.h"

namespace dew {
namespace {

using testing::TinyRun;
using testing::world;

std::vector<std::string> sharded() {
  return {"mesh.replica=1", "mesh.fsdp=" + std::to_string(world().size())};
}

bool is_last_rank() {
  return world().rank() == world().size() - 1;
}

TEST(StepSums, ShareTheWishOfAnyOneRank) {
  TinyRun run(sharded());
  for (int rank = 0; rank < world().size(); ++rank) {
    const bool mine = rank == world().rank();

    const StepSums stop = sum_step(run.store(), 0, {mine, false}, world());
    const StepSums save = sum_step(run.store(), 0, {false, mine}, world());

    EXPECT_TRUE(stop.stop && !stop.save) << rank;
    EXPECT_TRUE(save.save && !save.stop) << rank;
  }
  const StepSums none = sum_step(run.store(), 0, {}, world());
  EXPECT_FALSE(none.stop || none.save);
}

TEST(StepSums, AddTheLossesOfTheRanks) {
  TinyRun run(sharded());

  const StepSums sums = sum_step(run.store(), world().rank() + 1, {}, world());

  EXPECT_EQ(sums.loss, world().size() * (world().size() + 1) / 2);
}

TEST(NonFinite, NamesALossThatOneRankMeets) {
  TinyRun run(sharded());
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const StepSums sums = sum_step(run.store(), is_last_rank() ? bad : 1.0, {}, world());
    EXPECT_EQ(non_finite(run.store(), sums).find("loss is "), 0u) << bad;
  }
  EXPECT_EQ(non_finite(run.store(), sum_step(run.store(), 1.0, {}, world())), "");
}

TEST(NonFinite, NamesALeafThatOneRankMeets) {
  TinyRun run(sharded());
  for (const ShardedParameter& param : run.store().params()) {
    std::int64_t last = param.range.size() > 0 ? world().rank() : -1;  // small parameters reach few ranks
    world().max({&last, 1});
    const double bad = std::numeric_limits<double>::quiet_NaN();
    if (last == world().rank()) param.gradient.data<double>()[param.range.size() - 1] = bad;

    const std::string message = non_finite(run.store(), sum_step(run.store(), 1.0, {}, world()));

    EXPECT_NE(message.find("gradient of " + param.spec.name + " "), std::string::npos) << message;
    if (last == world().rank()) param.gradient.data<double>()[param.range.size() - 1] = 0;
  }
}

}  // namespace
}  // namespace dew
