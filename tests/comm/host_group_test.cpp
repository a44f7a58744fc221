#include "comm/host_group.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "base/check.h"
#include "support/mpi_world.h"

namespace dew {
namespace {

using testing::world;

TEST(HostGroup, AloneNeedsNoOthers) {
  const HostGroup alone = HostGroup::alone();
  std::vector<double> values{1.5};
  alone.sum(values);

  EXPECT_EQ(alone.size(), 1);
  EXPECT_EQ(alone.rank(), 0);
  EXPECT_EQ(alone.native(), nullptr);
  EXPECT_EQ(values[0], 1.5);
  EXPECT_EQ(alone.gather("a"), std::vector<std::string>{"a"});
  EXPECT_EQ(alone.broadcast("b", 0), "b");
  EXPECT_EQ(alone.split(3, 0).size(), 1);
  EXPECT_EQ(alone.duplicate().split_by_node().size(), 1);
  alone.barrier();
}

TEST(HostGroup, SumsInRankOrder) {
  // Not associative: from the left the small terms vanish one by one, from the right they would add up first.
  std::vector<double> values{world().rank() == 0 ? 1.0 : std::numeric_limits<double>::epsilon() / 2};
  world().sum(values);

  EXPECT_EQ(values[0], 1.0);
}

TEST(HostGroup, SumsIntegersModuloTheWord) {
  std::vector<std::int64_t> values{std::numeric_limits<std::int64_t>::max(), world().rank()};
  world().sum(values);

  const auto n = static_cast<std::uint64_t>(world().size());
  EXPECT_EQ(static_cast<std::uint64_t>(values[0]),
            n * std::uint64_t{std::numeric_limits<std::int64_t>::max()});
  EXPECT_EQ(values[1], world().size() * (world().size() - 1) / 2);
}

TEST(HostGroup, FindsExtremes) {
  std::vector<std::int64_t> high{world().rank(), -world().rank()}, low = high;
  world().max(high);
  world().min(low);

  EXPECT_EQ(high, (std::vector<std::int64_t>{world().size() - 1, 0}));
  EXPECT_EQ(low, (std::vector<std::int64_t>{0, 1 - world().size()}));
}

TEST(HostGroup, GathersTextsOfAnyLength) {
  const std::vector<std::string> texts =
      world().gather(std::string(static_cast<std::size_t>(world().rank()), 'x'));

  ASSERT_EQ(static_cast<int>(texts.size()), world().size());
  for (std::size_t r = 0; r < texts.size(); ++r) EXPECT_EQ(texts[r], std::string(r, 'x'));
}

TEST(HostGroup, BroadcastsFromAnyRoot) {
  const int root = world().size() - 1;
  const std::string own = "from " + std::to_string(world().rank());

  EXPECT_EQ(world().broadcast(own, root), "from " + std::to_string(root));
  EXPECT_THROW(static_cast<void>(world().broadcast(own, world().size())), Error);
}

TEST(HostGroup, SplitsByColourAndOrdersByKey) {
  const HostGroup half = world().split(world().rank() % 2, -world().rank());

  const int even = (world().size() + 1) / 2, members = world().rank() % 2 == 0 ? even : world().size() - even;
  EXPECT_EQ(half.size(), members);
  EXPECT_EQ(half.rank(), members - 1 - world().rank() / 2);
}

TEST(HostGroup, FindsTheRanksOfThisNode) {
  EXPECT_EQ(world().split_by_node().size(), world().size());
  EXPECT_EQ(world().duplicate().rank(), world().rank());
}

}  // namespace
}  // namespace dew
