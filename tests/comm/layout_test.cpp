#include "comm/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/check.h"

namespace dew {
namespace {

struct Case {
  Shape shape;
  std::vector<std::vector<Axis>> split_by;
  AxisSet storage, reduce;
};

// Extents prime and composite, smaller and larger than the pieces, with chunks that end before, at and after
// the slab.
const std::vector<Case>& cases() {
  static const std::vector<Case> kCases{
      {{7, 5, 3}, {{Axis::kTensor}}, {Axis::kFsdp}, {Axis::kReplica, Axis::kExpert, Axis::kSequence}},
      {{33}, {}, {Axis::kFsdp, Axis::kExpert, Axis::kSequence}, {Axis::kReplica}},
      {{4, 3, 11}, {{Axis::kExpert}, {}, {Axis::kTensor}}, {Axis::kFsdp}, {Axis::kReplica, Axis::kSequence}},
      {{257}, {{Axis::kStage, Axis::kTensor}}, {Axis::kFsdp}, {Axis::kReplica}},
      {{2, 1, 3, 2, 1, 5}, {{}, {}, {Axis::kTensor}}, {Axis::kReplica, Axis::kFsdp}, {Axis::kSequence}},
      {{}, {}, {Axis::kFsdp}, {Axis::kReplica}},
  };
  return kCases;
}

// Every way to write 1 to 64 ranks as a product of six extents.
void for_each_mesh(int most_ranks, const std::function<void(const MeshShape&)>& f) {
  MeshShape shape;
  const std::function<void(std::size_t, int)> extend = [&](std::size_t axis, int left) {
    if (axis == kAxisCount) return f(shape);
    for (int extent = 1; extent <= left; ++extent) {
      shape.extent[axis] = extent;
      extend(axis + 1, left / extent);
    }
    shape.extent[axis] = 1;
  };
  extend(0, most_ranks);
}

std::int64_t index_of(const Shape& shape, const std::vector<std::int64_t>& position) {
  std::int64_t index = 0;
  for (int d = 0; d < shape.dims(); ++d) index = index * shape.dim(d) + position[static_cast<std::size_t>(d)];
  return index;
}

// Global indices of a range of a rectangle's elements, in row-major order.
std::vector<std::int64_t> elements_of(const Slab& slab, Range range) {
  std::vector<std::int64_t> elements;
  std::vector<std::int64_t> position = slab.offset;
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    std::int64_t rest = i;
    for (int d = slab.extent.dims() - 1; d >= 0; --d) {
      const auto k = static_cast<std::size_t>(d);
      position[k] = slab.offset[k] + rest % slab.extent.dim(d);
      rest /= slab.extent.dim(d);
    }
    elements.push_back(index_of(slab.global, position));
  }
  return elements;
}

std::vector<std::int64_t> elements_of(const Slab& slab) {
  return elements_of(slab, {0, slab.extent.numel()});
}

// How often the owners' ranges hold each element.
std::vector<int> times_owned(const Layout& layout, const MeshShape& mesh) {
  std::vector<int> times(static_cast<std::size_t>(layout.global().numel()), 0);
  for (int rank = 0; rank < mesh.size(); ++rank) {
    const MeshCoord coord = mesh.coord_of(rank);
    const bool spread = layout.split_axes().has(Axis::kStage) || layout.storage_axes().has(Axis::kStage);
    // Stages that hold the same elements are not the layout's matter: one of them counts here.
    if (!layout.owns(coord) || (!spread && coord[static_cast<std::size_t>(Axis::kStage)] != 0)) continue;
    for (std::int64_t element : elements_of(layout.compute_slab(coord), layout.storage_range(coord))) {
      ++times[static_cast<std::size_t>(element)];
    }
  }
  return times;
}

TEST(Layout, SlabsTileTheTensorOnEveryMeshOfUpTo64Ranks) {
  int meshes = 0;
  for_each_mesh(64, [&](const MeshShape& mesh) {
    ++meshes;
    for (const Case& c : cases()) {
      const std::vector<int> times =
          times_owned(Layout(c.shape, c.split_by, c.storage, c.reduce, mesh), mesh);
      ASSERT_TRUE(std::all_of(times.begin(), times.end(), [](int n) { return n == 1; }))
          << c.shape << " on mesh " << ::testing::PrintToString(mesh.extent);
    }
  });
  EXPECT_EQ(meshes, 6656);  // ordered products of six extents that are at most 64
}

TEST(Layout, RanksThatDoNotOwnHoldACopyOfTheOwners) {
  for_each_mesh(12, [&](const MeshShape& mesh) {
    for (const Case& c : cases()) {
      const Layout layout(c.shape, c.split_by, c.storage, c.reduce, mesh);
      // Every stage that holds a parameter has an owner of its own.
      const AxisSet kept = layout.split_axes() | layout.storage_axes() | AxisSet{Axis::kStage};
      for (int rank = 0; rank < mesh.size(); ++rank) {
        const MeshCoord coord = mesh.coord_of(rank);
        MeshCoord owner{};
        for (Axis axis : kAllAxes) {
          const auto i = static_cast<std::size_t>(axis);
          if (kept.has(axis)) owner[i] = coord[i];
        }
        ASSERT_TRUE(layout.owns(owner));
        ASSERT_EQ(layout.owns(coord), coord == owner);
        ASSERT_EQ(layout.compute_slab(coord), layout.compute_slab(owner));
        ASSERT_EQ(layout.storage_range(coord), layout.storage_range(owner));
      }
    }
  });
}

TEST(Layout, ChunksAreEqualAndAlignedWithinAStorageGroup) {
  for_each_mesh(16, [&](const MeshShape& mesh) {
    for (const Case& c : cases()) {
      const Layout layout(c.shape, c.split_by, c.storage, c.reduce, mesh);
      for (int rank = 0; rank < mesh.size(); ++rank) {
        const MeshCoord coord = mesh.coord_of(rank);
        const std::int64_t slab = layout.compute_slab(coord).extent.numel(), chunk = layout.chunk(coord);
        const int ranks = mesh.size_of(layout.storage_axes());
        if (ranks == 1) {
          ASSERT_EQ(chunk, slab);
        } else {
          ASSERT_EQ(chunk % 16, 0);
          ASSERT_GE(chunk * ranks, slab);
        }
        MeshCoord first = coord;
        for (Axis axis : kAllAxes) {
          if (layout.storage_axes().has(axis)) first[static_cast<std::size_t>(axis)] = 0;
        }
        ASSERT_EQ(layout.chunk(first), chunk);
        const Range range = layout.storage_range(coord);
        const std::int64_t begin = mesh.index_in(layout.storage_axes(), coord) * chunk;
        ASSERT_EQ(range.begin, std::min(begin, slab));
        ASSERT_EQ(range.end, std::min(begin + chunk, slab));
      }
    }
  });
}

TEST(Layout, BoxesTileEveryRangeInOrderWithAtMostTwiceTheDims) {
  MeshShape mesh;
  mesh[Axis::kTensor] = 2;
  mesh[Axis::kExpert] = 3;
  for (const Case& c : cases()) {
    const Layout layout(c.shape, c.split_by, {}, {}, mesh);
    for (int rank = 0; rank < mesh.size(); ++rank) {
      const MeshCoord coord = mesh.coord_of(rank);
      const std::vector<std::int64_t> slab = elements_of(layout.compute_slab(coord));
      const auto elements = std::min<std::int64_t>(static_cast<std::int64_t>(slab.size()), 40);
      for (std::int64_t begin = 0; begin <= elements; ++begin) {
        for (std::int64_t end = begin; end <= elements; ++end) {
          const std::vector<Slab> boxes = layout.boxes(coord, {begin, end});
          ASSERT_LE(static_cast<int>(boxes.size()), std::max(1, 2 * c.shape.dims() - 1));
          std::vector<std::int64_t> covered;
          for (const Slab& box : boxes) {
            const std::vector<std::int64_t> part = elements_of(box);
            ASSERT_FALSE(part.empty());
            covered.insert(covered.end(), part.begin(), part.end());
          }
          ASSERT_TRUE(std::equal(covered.begin(), covered.end(), slab.begin() + begin, slab.begin() + end))
              << c.shape << " rank " << rank << ' ' << begin << ' ' << end;
        }
      }
    }
  }
}

TEST(Layout, GlobalIndexFollowsTheSlab) {
  MeshShape mesh;
  mesh[Axis::kTensor] = 4;
  mesh[Axis::kExpert] = 2;
  for (const Case& c : cases()) {
    const Layout layout(c.shape, c.split_by, {}, {}, mesh);
    for (int rank = 0; rank < mesh.size(); ++rank) {
      const MeshCoord coord = mesh.coord_of(rank);
      const std::vector<std::int64_t> slab = elements_of(layout.compute_slab(coord));
      for (std::size_t i = 0; i < slab.size(); ++i) {
        ASSERT_EQ(layout.global_index(coord, static_cast<std::int64_t>(i)), slab[i]);
      }
    }
  }
}

TEST(Layout, GivesTheLastRanksLessOrNothing) {
  MeshShape mesh;
  mesh[Axis::kTensor] = 4;
  const Layout layout({5}, {{Axis::kTensor}}, {}, {}, mesh);

  std::vector<std::int64_t> extents;
  for (int rank = 0; rank < 4; ++rank)
    extents.push_back(layout.compute_slab(mesh.coord_of(rank)).extent.numel());

  EXPECT_EQ(extents, (std::vector<std::int64_t>{2, 2, 1, 0}));
}

TEST(Layout, WalksTheExampleOfAnAttentionWeight) {
  MeshShape mesh;
  mesh[Axis::kTensor] = 2;
  mesh[Axis::kFsdp] = 4;
  const Layout layout({4096, 4096}, {{Axis::kTensor}}, {Axis::kFsdp}, {Axis::kReplica}, mesh);
  MeshCoord coord{};
  coord[static_cast<std::size_t>(Axis::kTensor)] = 1;
  coord[static_cast<std::size_t>(Axis::kFsdp)] = 3;

  const std::vector<Slab> boxes = layout.boxes(coord, layout.storage_range(coord));

  EXPECT_EQ(layout.chunk(coord), 2'097'152);
  ASSERT_EQ(boxes.size(), 1u);
  EXPECT_EQ(boxes[0].offset, (std::vector<std::int64_t>{2048 + 3 * 512, 0}));
  EXPECT_EQ(boxes[0].extent, (Shape{512, 4096}));
}

TEST(Layout, DropsAxesOfExtentOne) {
  MeshShape mesh;
  mesh[Axis::kReplica] = 2;
  const Layout layout({8, 8}, {{Axis::kTensor}}, {Axis::kFsdp}, {Axis::kReplica, Axis::kExpert}, mesh);

  EXPECT_TRUE(layout.split_axes().empty());
  EXPECT_TRUE(layout.storage_axes().empty());
  EXPECT_EQ(layout.reduce_axes(), AxisSet{Axis::kReplica});
}

TEST(Layout, RefusesAnAxisInTwoRoles) {
  const MeshShape mesh;
  EXPECT_THROW(Layout({8}, {{Axis::kFsdp}}, {Axis::kFsdp}, {}, mesh), Error);
  EXPECT_THROW(Layout({8}, {{Axis::kTensor}}, {}, {Axis::kTensor}, mesh), Error);
  EXPECT_THROW(Layout({8}, {}, {Axis::kFsdp}, {Axis::kFsdp}, mesh), Error);
  EXPECT_THROW(Layout({8, 8}, {{Axis::kTensor}, {Axis::kTensor}}, {}, {}, mesh), Error);
  EXPECT_THROW(Layout({8}, {{}, {Axis::kTensor}}, {}, {}, mesh), Error);
}

}  // namespace
}  // namespace dew
