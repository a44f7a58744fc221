#include "comm/topology.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/text.h"

namespace dew {

namespace {

std::string divisors_of(int n) {
  std::string text;
  for (int d = 1; d <= n; ++d) {
    if (n % d == 0) text += (text.empty() ? "" : ", ") + std::to_string(d);
  }
  return text;
}

std::string plural(int count, const char* noun) {
  return std::to_string(count) + ' ' + noun + (count == 1 ? "" : "s");
}

// "3" or "0-3".
std::string span_text(int first, int last) {
  return first == last ? std::to_string(first) : std::to_string(first) + '-' + std::to_string(last);
}

// The axes of extent above 1 in the mesh's order.
std::vector<Axis> used_axes(const MeshShape& shape) {
  std::vector<Axis> axes;
  for (Axis axis : shape.order) {
    if (shape[axis] > 1) axes.push_back(axis);
  }
  return axes;
}

std::string coord_text(const MeshShape& shape, int rank) {
  const MeshCoord coord = shape.coord_of(rank);
  std::string text;
  for (Axis axis : used_axes(shape)) {
    if (!text.empty()) text += ", ";
    text += format("%s %d", name_of(axis).data(), coord[static_cast<std::size_t>(axis)]);
  }
  return text;
}

// The coordinates of ranks [first, last]: a span an axis where they fill the product of the spans, else both
// ends.
std::string coords_text(const MeshShape& shape, int first, int last) {
  std::string text;
  std::int64_t product = 1;
  for (Axis axis : used_axes(shape)) {
    std::set<int> values;
    for (int rank = first; rank <= last; ++rank)
      values.insert(shape.coord_of(rank)[static_cast<std::size_t>(axis)]);
    product *= static_cast<std::int64_t>(values.size());
    if (!text.empty()) text += ", ";
    text += std::string(name_of(axis)) + ' ' + span_text(*values.begin(), *values.rbegin());
  }
  if (product == last - first + 1) return text;
  return "from " + coord_text(shape, first) + " to " + coord_text(shape, last);
}

// A line a node; ranks of a node are neighbours in mesh order.
std::string node_lines(const MeshShape& shape, const Topology& topology) {
  constexpr int kRanksShown = 16, kNodesShown = 4;
  const auto ranks = static_cast<int>(topology.node_of.size());
  const bool shorten = ranks > kRanksShown && topology.node_count > kNodesShown;
  const auto width = static_cast<int>(std::to_string(topology.node_count - 1).size());
  const auto rank_width = 2 * static_cast<int>(std::to_string(ranks - 1).size()) + 1;
  std::string text;
  for (int first = 0; first < ranks;) {
    const int node = topology.node_of[static_cast<std::size_t>(first)];
    int last = first;
    while (last + 1 < ranks && topology.node_of[static_cast<std::size_t>(last) + 1] == node) ++last;
    if (!shorten || node < kNodesShown - 1 || node == topology.node_count - 1) {
      text += format("node %*d: %s %-*s  %s\n", width, node, first == last ? "rank " : "ranks", rank_width,
                     span_text(first, last).c_str(), coords_text(shape, first, last).c_str());
    } else if (node == kNodesShown - 1) {
      text += "...\n";
    }
    first = last + 1;
  }
  return text;
}

}  // namespace

Topology Topology::from_nodes(std::span<const std::int64_t> node_of_world, int rank) {
  const auto ranks = static_cast<int>(node_of_world.size());
  DEW_CHECK(0 <= rank && rank < ranks, rank, ranks);
  // Nodes are numbered by their lowest world rank, and world ranks on a node keep their order.
  std::map<std::int64_t, int> number;
  std::vector<std::pair<int, int>> places;  // (node, world rank)
  for (int r = 0; r < ranks; ++r) {
    const auto next = static_cast<int>(number.size());
    places.emplace_back(number.try_emplace(node_of_world[static_cast<std::size_t>(r)], next).first->second,
                        r);
  }
  const int own_node = places[static_cast<std::size_t>(rank)].first;
  std::sort(places.begin(), places.end());

  Topology topology;
  topology.world_size = ranks;
  topology.node = own_node;
  topology.node_count = static_cast<int>(number.size());
  topology.local_size = 0;
  topology.node_of.clear();
  for (int mesh_rank = 0; mesh_rank < ranks; ++mesh_rank) {
    const auto [node, world] = places[static_cast<std::size_t>(mesh_rank)];
    if (world == rank) {
      topology.world_rank = mesh_rank;
      topology.local_rank = topology.local_size;
    }
    if (node == own_node) ++topology.local_size;
    topology.node_of.push_back(node);
  }
  return topology;
}

Topology Topology::discover(const HostGroup& world, int nodes) {
  // A node is known by the lowest world rank on it.
  std::vector<std::int64_t> node_of_world(static_cast<std::size_t>(world.size()), 0);
  std::int64_t lowest = world.rank();
  world.split_by_node().min({&lowest, 1});
  node_of_world[static_cast<std::size_t>(world.rank())] = lowest;
  world.sum(node_of_world);
  Topology found = from_nodes(node_of_world, world.rank());
  return nodes > 0 ? uniform(found.world_rank, found.world_size, nodes) : found;
}

Topology Topology::uniform(int rank, int ranks, int nodes) {
  DEW_CHECK(0 <= rank && rank < ranks, rank, ranks);
  if (nodes < 1 || ranks % nodes != 0) {
    throw ConfigError(format("topology.nodes: %d does not divide the %d ranks into equal nodes; accepted: %s",
                             nodes, ranks, divisors_of(ranks).c_str()));
  }
  Topology topology;
  topology.world_rank = rank;
  topology.world_size = ranks;
  topology.node_count = nodes;
  topology.local_size = ranks / nodes;
  topology.node = rank / topology.local_size;
  topology.local_rank = rank % topology.local_size;
  topology.node_of.clear();
  for (int r = 0; r < ranks; ++r) topology.node_of.push_back(r / topology.local_size);
  topology.rehearsed = true;
  return topology;
}

bool Topology::equal_nodes() const {
  std::vector<int> ranks_on(static_cast<std::size_t>(node_count), 0);
  for (int node_of_rank : node_of) ++ranks_on[static_cast<std::size_t>(node_of_rank)];
  return std::all_of(ranks_on.begin(), ranks_on.end(), [&](int n) { return n == ranks_on.front(); });
}

AxisSet axes_across_nodes(const MeshShape& shape, const Topology& topology) {
  DEW_CHECK(shape.size() == topology.world_size, shape.size(), topology.world_size);
  AxisSet across;
  for (int rank = 0; rank < shape.size(); ++rank) {
    const MeshCoord coord = shape.coord_of(rank);
    for (Axis axis : used_axes(shape)) {
      MeshCoord first = coord;
      first[static_cast<std::size_t>(axis)] = 0;
      const int other = shape.rank_of(first);
      if (topology.node_of[static_cast<std::size_t>(rank)] !=
          topology.node_of[static_cast<std::size_t>(other)]) {
        across = across.with(axis);
      }
    }
  }
  return across;
}

namespace {

/// The ranks that a group of this axis spans, since the axes inside it lie between its members.
int span_of(const MeshShape& shape, Axis axis) {
  int span = 1;
  for (std::size_t i = kAxisCount; i-- > 0;) {
    span *= shape[shape.order[i]];
    if (shape.order[i] == axis) break;
  }
  return span;
}

/// A group fits equal nodes when it lies within one, or takes the same number of members from each node it
/// touches.
bool fits_nodes(const MeshShape& shape, Axis axis, int ranks_of_node) {
  const int span = span_of(shape, axis), stride = span / shape[axis];
  if (ranks_of_node % span == 0 || stride % ranks_of_node == 0) return true;
  return span % ranks_of_node == 0 && ranks_of_node % stride == 0;
}

}  // namespace

std::vector<std::string> crossing_errors(const MeshShape& shape, const Topology& topology, AxisSet allowed) {
  const AxisSet refused = axes_across_nodes(shape, topology) - allowed;
  std::string names;
  for (Axis axis : kAllAxes) {
    if (allowed.has(axis)) names += (names.empty() ? "" : ", ") + std::string(name_of(axis));
  }
  std::vector<std::string> messages;
  for (Axis axis : shape.order) {
    const std::string name(name_of(axis));
    const int span = span_of(shape, axis);
    if (!refused.has(axis)) {
      const int local = topology.world_size / topology.node_count;
      if (shape[axis] > 1 && topology.equal_nodes() && !fits_nodes(shape, axis, local))
        messages.push_back("mesh." + name + ": its groups of " + std::to_string(shape[axis]) +
                           " spread over " + plural(span, "neighbouring rank") +
                           " and would straddle nodes of " + plural(local, "rank") +
                           "; accepted: sizes that divide a node or fill whole nodes");
      continue;
    }
    const std::string inside = topology.equal_nodes()
                                   ? plural(topology.world_size / topology.node_count, "rank") + " a node"
                                   : "nodes of unequal numbers of ranks";
    messages.push_back("mesh." + name + ": its groups of " + std::to_string(shape[axis]) + " spread over " +
                       plural(span, "neighbouring rank") + " and would cross nodes (" +
                       plural(topology.world_size, "rank") + " on " + plural(topology.node_count, "node") +
                       ", " + inside + "); make it smaller, move it inwards in mesh.order, or add " + name +
                       " to mesh.across_nodes (now: " + (names.empty() ? "none" : names) + ")");
  }
  return messages;
}

std::string explain(const MeshShape& shape, const Topology& topology) {
  const AxisSet across = axes_across_nodes(shape, topology);
  std::string text = "mesh: ";
  for (Axis axis : used_axes(shape)) {
    text += format("%s %d (%s) x ", name_of(axis).data(), shape[axis],
                   across.has(axis) ? "across nodes" : "within a node");
  }
  if (shape.size() > 1) text.replace(text.size() - 3, 3, ", ");
  text += plural(topology.world_size, "rank") + " on " + plural(topology.node_count, "node");
  text += topology.rehearsed && topology.node_count > 1 ? " (rehearsed)\n" : "\n";
  return shape.size() > 1 ? text + node_lines(shape, topology) : text;
}

}  // namespace dew
