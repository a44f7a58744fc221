// Tests that must fail: CTest checks how dew_mpi_main reports them.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "support/mpi_world.h"

namespace dew::testing {
namespace {

TEST(FailingRank, FailsOnTheLastRankOnly) {
  EXPECT_LT(world().rank(), world().size() - 1) << "planted";
}

TEST(FailingRank, DISABLED_HangsOnTheLastRankOnly) {
  if (world().rank() == world().size() - 1) std::this_thread::sleep_for(std::chrono::hours(1));
  world().barrier();
}

}  // namespace
}  // namespace dew::testing
