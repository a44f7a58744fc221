#include "io/box_runs.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/check.h"

namespace dew {
namespace {

/// Global indices of a box's elements in order, by the definition.
std::vector<std::int64_t> indices_of(const Slab& box) {
  std::vector<std::int64_t> indices;
  for (std::int64_t element = 0; element < box.extent.numel(); ++element) {
    std::int64_t rest = element, index = 0, stride = 1;
    for (int d = box.global.dims() - 1; d >= 0; --d) {
      index += (box.offset[static_cast<std::size_t>(d)] + rest % box.extent.dim(d)) * stride;
      rest /= box.extent.dim(d);
      stride *= box.global.dim(d);
    }
    indices.push_back(index);
  }
  return indices;
}

std::vector<std::int64_t> indices_of_runs(const Slab& box) {
  std::vector<std::int64_t> indices;
  const BoxRuns runs(box);
  runs.for_each([&](std::int64_t begin) {
    for (std::int64_t i = 0; i < runs.length(); ++i) indices.push_back(begin + i);
  });
  return indices;
}

const std::vector<Slab>& boxes() {
  static const std::vector<Slab> kBoxes{{{}, {}, {}},
                                        {{33}, {5}, {7}},
                                        {{33, 7}, {4, 0}, {9, 7}},
                                        {{33, 7}, {4, 2}, {9, 3}},
                                        {{3, 5, 7}, {1, 2, 3}, {2, 3, 4}},
                                        {{3, 5, 7}, {1, 2, 0}, {2, 2, 7}},
                                        {{3, 5, 7}, {0, 0, 6}, {3, 5, 1}},
                                        {{2, 3, 2, 3, 2, 3}, {1, 0, 1, 0, 1, 0}, {1, 3, 1, 3, 1, 2}},
                                        {{33, 7}, {4, 2}, {0, 3}},
                                        {{0, 7}, {0, 0}, {0, 7}}};
  return kBoxes;
}

TEST(BoxRuns, MeetEveryElementInOrder) {
  for (const Slab& box : boxes())
    EXPECT_EQ(indices_of_runs(box), indices_of(box)) << box.global << box.extent;
}

TEST(BoxRuns, AreAsLongAsTheyCanBe) {
  const BoxRuns rows({{33, 7}, {4, 0}, {9, 7}});
  const BoxRuns columns({{33, 7}, {4, 2}, {9, 3}});

  EXPECT_EQ(rows.count(), 1);
  EXPECT_EQ(rows.length(), 63);
  EXPECT_EQ(columns.count(), 9);
  EXPECT_EQ(columns.length(), 3);
}

TEST(BoxRuns, RefuseABoxOutsideItsTensor) {
  EXPECT_THROW(BoxRuns({{33, 7}, {30, 0}, {4, 7}}), Error);
  EXPECT_THROW(BoxRuns({{33, 7}, {-1, 0}, {4, 7}}), Error);
  EXPECT_THROW(BoxRuns({{33, 7}, {0}, {4, 7}}), Error);
}

TEST(SplitBox, CutsWithinTheLimitAndKeepsTheOrder) {
  for (const Slab& box : boxes())
    for (const std::int64_t limit : {1, 2, 5, 16, 1000}) {
      std::vector<std::int64_t> indices;
      for (const Slab& piece : split_box(box, limit)) {
        EXPECT_LE(piece.extent.numel(), limit);
        const std::vector<std::int64_t> part = indices_of(piece);
        indices.insert(indices.end(), part.begin(), part.end());
      }
      EXPECT_EQ(indices, indices_of(box)) << box.global << box.extent << ' ' << limit;
    }
}

// 3 x 2^31 elements: arithmetic in 32 bits would wrap.
TEST(SplitBox, CountsBeyond32Bits) {
  const std::int64_t rows = 3, columns = std::int64_t{1} << 31;
  const std::vector<Slab> pieces = split_box({{rows, columns}, {0, 0}, {rows, columns}}, columns / 2);

  ASSERT_EQ(pieces.size(), 6u);
  EXPECT_EQ(pieces.back().offset, (std::vector<std::int64_t>{2, columns / 2}));
  EXPECT_EQ(BoxRuns({{rows, columns}, {2, 0}, {1, columns}}).length(), columns);
}

}  // namespace
}  // namespace dew
