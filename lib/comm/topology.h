// Where ranks live: which share a node, and in which order. Collective to discover, a plain value afterwards.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/axis.h"
#include "comm/host_group.h"

namespace dew {

struct Topology {
  int world_rank = 0, world_size = 1;  ///< in mesh order: by (node, local rank)
  int node = 0, node_count = 1;
  int local_rank = 0, local_size = 1;
  std::vector<int> node_of{0};  ///< node of each mesh-ordered rank
  bool rehearsed = false;       ///< the node count was given, not found

  /// Ranks on the same node share memory. `nodes` > 0 rehearses that many equal nodes on the ranks at hand.
  /// Collective over `world`. Throws ConfigError (path topology.nodes) when the ranks do not divide into the
  /// nodes.
  static Topology discover(const HostGroup& world, int nodes);
  /// The same from the node of every world rank (any numbers, equal for ranks on one node), as seen by `rank`
  /// of world.
  static Topology from_nodes(std::span<const std::int64_t> node_of_world, int rank);
  /// `ranks` ranks on `nodes` equal nodes as seen by `rank`, with no communication. Throws as discover does.
  static Topology uniform(int rank, int ranks, int nodes);

  bool equal_nodes() const;  ///< the same number of ranks on every node
};

/// The axes, of extent above 1, whose groups have members on more than one node.
AxisSet axes_across_nodes(const MeshShape& shape, const Topology& topology);

/// Checks that only `allowed` axes cross nodes, and that those which cross equal nodes take as many ranks of
/// each. Returns one message (with the axis, its extent and the ranks of a node) for each that does not.
std::vector<std::string> crossing_errors(const MeshShape& shape, const Topology& topology, AxisSet allowed);

/// The printed map: a line an axis of extent above 1 (extent, within a node or across nodes), then which
/// coordinates sit on which node (shortened above 16 ranks).
std::string explain(const MeshShape& shape, const Topology& topology);

}  // namespace dew
