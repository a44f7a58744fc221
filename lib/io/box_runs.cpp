#include "io/box_runs.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/check.h"

namespace dew {
namespace {

void split_into(const Slab& box, std::int64_t max_elements, int dim, std::vector<Slab>& pieces) {
  if (box.extent.numel() <= max_elements) {
    pieces.push_back(box);
    return;
  }
  while (box.extent.dim(dim) == 1) ++dim;  // ends: a box of one element is never too large
  const std::int64_t extent = box.extent.dim(dim);
  const std::int64_t inner = box.extent.numel() / extent;
  const std::int64_t step = std::max<std::int64_t>(1, max_elements / inner);
  for (std::int64_t begin = 0; begin < extent; begin += step) {
    std::array<std::int64_t, Shape::kMaxDims> extents{};
    std::ranges::copy(box.extent.extents(), extents.begin());
    extents[static_cast<std::size_t>(dim)] = std::min(step, extent - begin);
    Slab piece = box;
    piece.offset[static_cast<std::size_t>(dim)] += begin;
    piece.extent = Shape(std::span<const std::int64_t>(extents.data(), box.extent.extents().size()));
    split_into(piece, max_elements, dim, pieces);
  }
}

}  // namespace

void check_box(const Slab& box) {
  DEW_CHECK(box.extent.dims() == box.global.dims() && box.offset.size() == box.global.extents().size(),
            box.global, box.extent, box.offset.size());
  for (int d = 0; d < box.global.dims(); ++d) {
    const std::int64_t offset = box.offset[static_cast<std::size_t>(d)];
    DEW_CHECK(offset >= 0 && offset + box.extent.dim(d) <= box.global.dim(d), box.global, box.extent, d,
              offset);
  }
}

BoxRuns::BoxRuns(const Slab& box) {
  check_box(box);
  std::int64_t stride = 1;
  bool whole = true;  // every dim further in is covered from end to end
  for (int d = box.global.dims() - 1; d >= 0; --d) {
    const std::int64_t extent = box.extent.dim(d);
    first_ += box.offset[static_cast<std::size_t>(d)] * stride;
    if (whole) {
      length_ *= extent;
      whole = extent == box.global.dim(d);
    } else {
      count_ *= extent;
      outer_.push_back({extent, stride});
    }
    stride *= box.global.dim(d);
  }
  std::ranges::reverse(outer_);
  if (length_ == 0) count_ = 0;
}

std::vector<Slab> split_box(const Slab& box, std::int64_t max_elements) {
  check_box(box);
  DEW_CHECK(max_elements > 0, max_elements);
  std::vector<Slab> pieces;
  if (box.extent.numel() > 0) split_into(box, max_elements, 0, pieces);
  return pieces;
}

}  // namespace dew
