#include "comm/agreement.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/check.h"
#include "support/mpi_world.h"

namespace dew {
namespace {

using testing::world;

TEST(FirstFailure, IsEmptyWhereAllSucceed) {
  EXPECT_EQ(first_failure(world(), [] {}), "");
  EXPECT_NO_THROW(succeed_together(world(), [] {}));
}

TEST(FirstFailure, OfOneRankIsThatOfAllAndNamesIt) {
  for (int bad = 0; bad < world().size(); ++bad) {
    const auto work = [bad] {
      if (world().rank() == bad) throw Error("no room");
    };

    const std::string message = first_failure(world(), work);

    EXPECT_EQ(message.find("no room"), 0u) << message;
    if (world().size() > 1) {
      EXPECT_NE(message.find("on rank " + std::to_string(bad) + ","), std::string::npos) << message;
    }
    EXPECT_EQ(world().gather(message),
              std::vector<std::string>(static_cast<std::size_t>(world().size()), message));
    EXPECT_THROW(succeed_together(world(), work), SharedError);
  }
}

TEST(FirstFailure, OfSeveralIsThatOfTheLowestRank) {
  const int size = world().size();
  const std::string message = first_failure(world(), [] {
    if (world().rank() > 0) throw Error("fault of " + std::to_string(world().rank()));
  });
  EXPECT_EQ(message.find(size > 1 ? "fault of 1 (on rank 1," : ""), 0u) << message;
}

TEST(FirstFailure, ThatAllRanksShareNamesNone) {
  EXPECT_EQ(first_failure(world(), [] { throw Error("too small"); }), "too small");
}

}  // namespace
}  // namespace dew
