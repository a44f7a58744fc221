#include "comm/axis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"

namespace dew {
namespace {

MeshShape six_axes() {
  MeshShape shape;
  shape.extent = {2, 1, 3, 2, 1, 2};
  return shape;
}

TEST(Axis, NamesReadBack) {
  for (Axis axis : kAllAxes) EXPECT_EQ(axis_named(name_of(axis)), axis);
  EXPECT_EQ(axis_named("width"), std::nullopt);
}

TEST(AxisSet, PrintsItsAxes) {
  EXPECT_EQ((AxisSet{Axis::kFsdp, Axis::kReplica}).str(), "replica x fsdp");
  EXPECT_EQ(AxisSet{}.str(), "none");
}

TEST(AxisSet, SubtractsAndJoins) {
  const AxisSet set = AxisSet{Axis::kFsdp} | AxisSet{Axis::kTensor};
  EXPECT_EQ(set - AxisSet{Axis::kFsdp}, AxisSet{Axis::kTensor});
  EXPECT_FALSE((set - AxisSet{Axis::kFsdp}).has(Axis::kFsdp));
}

TEST(MeshShape, RankOfInvertsCoordOf) {
  MeshShape shape = six_axes();
  for (int turn = 0; turn < kAxisCount; ++turn) {
    std::set<MeshCoord> seen;
    for (int rank = 0; rank < shape.size(); ++rank) {
      EXPECT_EQ(shape.rank_of(shape.coord_of(rank)), rank);
      seen.insert(shape.coord_of(rank));
    }
    EXPECT_EQ(static_cast<int>(seen.size()), shape.size());
    std::rotate(shape.order.begin(), shape.order.begin() + 1, shape.order.end());
  }
  EXPECT_THROW(shape.coord_of(shape.size()), Error);
}

TEST(MeshShape, LastAxisOfTheOrderVariesFastest) {
  const MeshShape shape = six_axes();

  const MeshCoord next = shape.coord_of(1);

  EXPECT_EQ(next[static_cast<std::size_t>(Axis::kTensor)], 1);
}

TEST(MeshShape, GroupAndIndexNameEveryRankOnce) {
  const MeshShape shape = six_axes();
  for (unsigned bits = 0; bits < 64; ++bits) {
    AxisSet axes;
    for (Axis axis : kAllAxes) {
      if ((bits >> static_cast<int>(axis) & 1) != 0) axes = axes.with(axis);
    }
    std::set<std::pair<int, int>> seen;
    for (int rank = 0; rank < shape.size(); ++rank) {
      const MeshCoord coord = shape.coord_of(rank);
      const int index = shape.index_in(axes, coord);
      ASSERT_TRUE(0 <= index && index < shape.size_of(axes));
      seen.emplace(shape.group_of(axes, coord), index);
    }
    EXPECT_EQ(static_cast<int>(seen.size()), shape.size()) << axes.str();
  }
}

}  // namespace
}  // namespace dew
