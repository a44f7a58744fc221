#include "base/shape.h"

#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "base/check.h"

namespace dew {
namespace {

TEST(Shape, IsAScalarByDefault) {
  const Shape shape;

  EXPECT_EQ(shape.dims(), 0);
  EXPECT_EQ(shape.numel(), 1);
  EXPECT_EQ(shape.str(), "[]");
  EXPECT_THROW(shape.dim(0), Error);
  EXPECT_THROW(shape.dim(-1), Error);
}

TEST(Shape, CountsDimsFromBothEnds) {
  const Shape shape{2, 33, 257};

  EXPECT_EQ(shape.dims(), 3);
  EXPECT_EQ(shape.numel(), 2 * 33 * 257);
  EXPECT_EQ(shape.dim(0), 2);
  EXPECT_EQ(shape.dim(2), 257);
  EXPECT_EQ(shape.dim(-1), 257);
  EXPECT_EQ(shape.dim(-3), 2);
  EXPECT_THROW(shape.dim(3), Error);
  EXPECT_THROW(shape.dim(-4), Error);
}

TEST(Shape, AllowsNoElements) {
  const Shape shape{4, 0, 3};

  EXPECT_EQ(shape.numel(), 0);
  EXPECT_EQ(shape.dim(1), 0);
}

TEST(Shape, RefusesNegativeExtentsAndSevenDims) {
  EXPECT_THROW((Shape{2, -1}), Error);
  EXPECT_NO_THROW((Shape{1, 1, 1, 1, 1, 1}));
  EXPECT_THROW((Shape{1, 1, 1, 1, 1, 1, 1}), Error);
}

TEST(Shape, CountsBeyond32Bits) {
  EXPECT_EQ((Shape{1 << 20, 1 << 20}).numel(), std::int64_t{1} << 40);
}

TEST(Shape, ComparesExtentsAndDims) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2}), (Shape{2, 0}));
  EXPECT_NE(Shape{}, Shape{0});
}

TEST(Shape, IsMadeFromASpanAndPrints) {
  const std::vector<std::int64_t> extents{5, 7};
  const Shape shape{std::span<const std::int64_t>(extents)};
  std::ostringstream out;

  out << shape;

  EXPECT_EQ(shape, (Shape{5, 7}));
  EXPECT_EQ(out.str(), "[5, 7]");
  EXPECT_EQ(std::vector<std::int64_t>(shape.extents().begin(), shape.extents().end()), extents);
}

}  // namespace
}  // namespace dew
