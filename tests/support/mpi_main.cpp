// The main of tests with ranks: fails on every rank when any rank fails.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <optional>

#include "base/check.h"
#include "comm/mpi_env.h"
#include "support/leak_check.h"
#include "support/mpi_world.h"
#include "support/rank_listener.h"

namespace dew::testing {

namespace {

// GoogleTest makes the test objects itself, so what they need has to lie where they find it.
std::optional<HostGroup>& world_of_tests() {
  static std::optional<HostGroup> world;
  return world;
}

int run_tests(const MpiEnv& mpi) {
  world_of_tests() = mpi.world().duplicate();
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  const HostGroup agreement = mpi.world().duplicate();
  auto* listener = new RankListener(agreement);
  listeners.Append(listener);
  const bool failed_here = RUN_ALL_TESTS() != 0;
  const bool failed = failed_here || listener->failed();
  delete listeners.Release(listener);
  world_of_tests().reset();
  return failed || leaks() ? 1 : 0;
}

}  // namespace

const HostGroup& world() {
  DEW_CHECK(world_of_tests().has_value());
  return *world_of_tests();
}

}  // namespace dew::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  dew::prepare_launch();
  int status = 0;
  {
    std::optional<dew::MpiEnv> mpi;
    {
      const dew::testing::LeaksAllowed by_mpi;
      mpi.emplace(argc, argv);
    }
    status = dew::testing::run_tests(*mpi);
  }
  std::fflush(nullptr);
  std::_Exit(status);  // without the leak check at exit
}
