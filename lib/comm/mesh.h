// This rank's place in the mesh and its communicators along axes and products of axes.
#pragma once

#include <map>
#include <memory>
#include <span>

#include "comm/axis.h"
#include "comm/communicator.h"

namespace dew {

class Mesh {
 public:
  /// Builds the group of every single axis, of the data axes, of every product in `groups`, and the world,
  /// eagerly and in one fixed order. Collective over `ranks`, the job's ranks in mesh order
  /// (Topology::world_rank). Throws Error when the extents do not multiply to the number of ranks.
  Mesh(const HostGroup& ranks, const MeshShape& shape, std::span<const AxisSet> groups);
  /// The same mesh with the same groups as seen from `coord`, with communicators that count and move nothing.
  Mesh(const MeshShape& shape, const MeshCoord& coord, std::span<const AxisSet> groups);

  const MeshShape& shape() const { return shape_; }
  const MeshCoord& coord() const { return coord_; }
  int coord(Axis axis) const { return coord_[static_cast<std::size_t>(axis)]; }
  int extent(Axis axis) const { return shape_[axis]; }

  /// Ranks that differ from this one only on `axis`.
  Communicator& along(Axis axis) const { return over(AxisSet{axis}); }
  /// Ranks that differ only on these axes. Axes of extent 1 do not matter. Throws Error for a product not
  /// built.
  Communicator& over(AxisSet axes) const;
  Communicator& world() const { return over(kEveryAxis); }

  /// Lets operations in flight advance; for Stream::set_progress.
  void poll() const { progress_->poll(); }

  /// Bytes and calls of each group since the last clear, by name, groups of one rank left out.
  std::map<std::string, Traffic> traffic() const;
  void clear_traffic();
  /// Compares what the ranks of every group have called so far; throws SharedError naming the group and both
  /// sides' operations. `ranks` are those the mesh was built over. Collective.
  void check_same_calls(const HostGroup& ranks) const;

 private:
  template <class Make>
  void build_groups(std::span<const AxisSet> groups, const Make& make);
  AxisSet effective(AxisSet axes) const;  ///< without the axes of extent 1

  MeshShape shape_;
  MeshCoord coord_{};
  std::unique_ptr<MpiProgress> progress_;
  std::map<unsigned, std::unique_ptr<Communicator>> groups_;  ///< by the bits of the effective set
};

}  // namespace dew
