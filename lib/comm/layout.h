// Which part of a parameter a rank computes with, stores, reduces and owns. Pure arithmetic on mesh
// coordinates.
#pragma once

#include <cstdint>
#include <vector>

#include "base/shape.h"
#include "comm/axis.h"

namespace dew {

/// One rectangle of a global tensor.
struct Slab {
  Shape global;
  std::vector<std::int64_t> offset;  ///< one a dim
  Shape extent;
  bool operator==(const Slab&) const = default;
};

/// Elements [begin, end) of a slab in row-major order; may be empty.
struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

class Layout {
 public:
  /// `split_by[d]` lists the axes that split dim d into rectangles, outermost first (shorter lists mean
  /// unsplit; a dim that does not divide gives the last ranks less or nothing). `storage`: axes over which
  /// the slab's elements are stored in equal flat chunks. `reduce`: axes over which gradients of whole-stored
  /// elements are summed by all-reduce. The three sets are disjoint; Error otherwise. Axes of extent 1 are
  /// dropped from all three.
  Layout(const Shape& global, std::vector<std::vector<Axis>> split_by, AxisSet storage, AxisSet reduce,
         const MeshShape& mesh);

  const Shape& global() const { return global_; }
  AxisSet split_axes() const { return split_axes_; }
  AxisSet split_axes(int dim) const;                 ///< those of one dim
  AxisSet storage_axes() const { return storage_; }  ///< gradient: reduce-scatter over these (extent above 1)
  AxisSet reduce_axes() const { return reduce_; }    ///< gradient: all-reduce over these

  /// What a block computes with after the gather.
  Slab compute_slab(const MeshCoord& coord) const;
  /// Elements of the slab's row-major order that this rank stores: [i * chunk, (i + 1) * chunk) cut at the
  /// slab's end, i the index within the storage group.
  Range storage_range(const MeshCoord& coord) const;
  /// Elements of one storage chunk, the same on every rank of the storage group: ceil(slab / ranks), rounded
  /// up to 16 so that every chunk starts aligned; the whole slab where the storage group is one rank.
  std::int64_t chunk(const MeshCoord& coord) const;
  /// True on the one rank of a stage among those that hold the same elements which counts them in norms and
  /// writes them to disk: coordinate 0 on every axis that neither splits nor stores. Which stages hold a
  /// parameter is not the layout's matter.
  bool owns(const MeshCoord& coord) const;

  /// The rectangles of the global tensor that a range of this rank's slab covers, in row-major order: at most
  /// 2 dims - 1.
  std::vector<Slab> boxes(const MeshCoord& coord, Range range) const;
  /// The global row-major index of an element of this rank's slab.
  std::int64_t global_index(const MeshCoord& coord, std::int64_t element) const;

 private:
  Shape global_;
  std::vector<std::vector<Axis>> split_by_;
  AxisSet split_axes_, storage_, reduce_;
  MeshShape mesh_;
};

}  // namespace dew
