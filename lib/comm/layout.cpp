#include "comm/layout.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"

namespace dew {

namespace {

constexpr std::int64_t kChunkMultiple = 16;  // elements: 64 bytes of f32, the alignment of a block of memory

using Extents = std::array<std::int64_t, Shape::kMaxDims>;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// Elements between neighbours on each dim.
Extents strides_of(const Shape& shape) {
  Extents strides{};
  std::int64_t stride = 1;
  for (int d = shape.dims() - 1; d >= 0; --d) {
    strides[static_cast<std::size_t>(d)] = stride;
    stride *= shape.dim(d);
  }
  return strides;
}

AxisSet above_one(AxisSet axes, const MeshShape& mesh) {
  AxisSet kept;
  for (Axis axis : kAllAxes) {
    if (axes.has(axis) && mesh[axis] > 1) kept = kept.with(axis);
  }
  return kept;
}

}  // namespace

Layout::Layout(const Shape& global, std::vector<std::vector<Axis>> split_by, AxisSet storage, AxisSet reduce,
               const MeshShape& mesh)
    : global_(global), split_by_(std::move(split_by)), mesh_(mesh) {
  DEW_CHECK(static_cast<int>(split_by_.size()) <= global.dims(), split_by_.size(), global);
  AxisSet split;
  for (const std::vector<Axis>& axes : split_by_) {
    for (Axis axis : axes) {
      DEW_CHECK(!split.has(axis), name_of(axis), "splits twice");
      split = split.with(axis);
    }
  }
  DEW_CHECK((split - storage) == split && (split - reduce) == split && (storage - reduce) == storage, "split",
            split.str(), "storage", storage.str(), "reduce", reduce.str());
  split_axes_ = above_one(split, mesh);
  storage_ = above_one(storage, mesh);
  reduce_ = above_one(reduce, mesh);
}

AxisSet Layout::split_axes(int dim) const {
  AxisSet axes;
  if (static_cast<std::size_t>(dim) < split_by_.size())
    for (Axis axis : split_by_[static_cast<std::size_t>(dim)])
      if (mesh_[axis] > 1) axes = axes.with(axis);
  return axes;
}

Slab Layout::compute_slab(const MeshCoord& coord) const {
  Slab slab{global_, std::vector<std::int64_t>(static_cast<std::size_t>(global_.dims()), 0), global_};
  Extents extents{};
  for (int d = 0; d < global_.dims(); ++d) {
    const auto i = static_cast<std::size_t>(d);
    const std::int64_t whole = global_.dim(d);
    std::int64_t pieces = 1, index = 0;
    if (i < split_by_.size()) {
      for (Axis axis : split_by_[i]) {
        pieces *= mesh_[axis];
        index = index * mesh_[axis] + coord[static_cast<std::size_t>(axis)];
      }
    }
    const std::int64_t piece = ceil_div(whole, pieces);
    slab.offset[i] = std::min(index * piece, whole);
    extents[i] = std::min(piece, whole - slab.offset[i]);
  }
  slab.extent =
      Shape(std::span<const std::int64_t>(extents.data(), static_cast<std::size_t>(global_.dims())));
  return slab;
}

std::int64_t Layout::chunk(const MeshCoord& coord) const {
  const std::int64_t elements = compute_slab(coord).extent.numel();
  const int ranks = mesh_.size_of(storage_);
  if (ranks == 1) return elements;
  return ceil_div(ceil_div(elements, ranks), kChunkMultiple) * kChunkMultiple;
}

Range Layout::storage_range(const MeshCoord& coord) const {
  const std::int64_t elements = compute_slab(coord).extent.numel();
  const std::int64_t size = chunk(coord);
  const std::int64_t begin = std::min(mesh_.index_in(storage_, coord) * size, elements);
  return {begin, std::min(begin + size, elements)};
}

bool Layout::owns(const MeshCoord& coord) const {
  const AxisSet copies = kEveryAxis - split_axes_ - storage_ - AxisSet{Axis::kStage};
  for (Axis axis : kAllAxes) {
    if (copies.has(axis) && coord[static_cast<std::size_t>(axis)] != 0) return false;
  }
  return true;
}

std::vector<Slab> Layout::boxes(const MeshCoord& coord, Range range) const {
  const Slab slab = compute_slab(coord);
  const int dims = global_.dims();
  DEW_CHECK(0 <= range.begin && range.begin <= range.end && range.end <= slab.extent.numel(), range.begin,
            range.end, slab.extent);
  const Extents strides = strides_of(slab.extent);
  std::vector<Slab> result;
  for (std::int64_t at = range.begin; at < range.end;) {
    // The outermost dim on which a whole run of inner rows starts here and fits.
    int level = 0;
    while (level < dims - 1) {
      const std::int64_t stride = strides[static_cast<std::size_t>(level)];
      if (at % stride == 0 && at + stride <= range.end) break;
      ++level;
    }
    Slab box{global_, slab.offset, slab.extent};
    Extents extents{};
    std::int64_t rest = at, taken = 1;
    for (int d = 0; d < dims; ++d) {
      const auto i = static_cast<std::size_t>(d);
      const std::int64_t position = rest / strides[i];
      rest %= strides[i];
      extents[i] = d > level ? slab.extent.dim(d) : 1;
      if (d == level) extents[i] = std::min((range.end - at) / strides[i], slab.extent.dim(d) - position);
      box.offset[i] += position;
      taken *= extents[i];
    }
    box.extent = Shape(std::span<const std::int64_t>(extents.data(), static_cast<std::size_t>(dims)));
    result.push_back(std::move(box));
    at += taken;
  }
  return result;
}

std::int64_t Layout::global_index(const MeshCoord& coord, std::int64_t element) const {
  const Slab slab = compute_slab(coord);
  DEW_CHECK(0 <= element && element < slab.extent.numel(), element, slab.extent);
  const Extents inner = strides_of(slab.extent), outer = strides_of(global_);
  std::int64_t index = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(global_.dims()); ++i) {
    index += (slab.offset[i] + element / inner[i]) * outer[i];
    element %= inner[i];
  }
  return index;
}

}  // namespace dew
