// What ranks sent, by group: counted by the communicators, with the part of it that leaves a node, beside
// what the nodes' interfaces sent.
#pragma once

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "train/run_setup.h"

namespace dew::bench {

/// Bytes that the interfaces of this node, but for the loopback, have sent so far. 0 where the system does
/// not say.
inline double interface_bytes() {
  std::ifstream table("/proc/self/net/dev");  // of the process's own network namespace, as /sys need not be
  std::string line;
  double total = 0;
  while (std::getline(table, line)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.find("lo:") < colon) continue;
    constexpr int kBytesSent = 8;  // column behind the name
    long long value = 0;
    const char* at = line.c_str() + colon + 1;
    for (int column = 0, length = 0; column <= kBytesSent; ++column, at += length)
      if (std::sscanf(at, "%lld%n", &value, &length) != 1) return 0;
    total += static_cast<double>(value);
  }
  return total;
}

/// The groups of a run with more than one rank, each once.
inline std::vector<AxisSet> groups_of(const RunSetup& setup, const Mesh& mesh) {
  std::vector<AxisSet> all, groups;
  for (const Axis axis : kAllAxes) all.push_back(AxisSet{axis});
  all.push_back(kDataAxes);
  all.insert(all.end(), setup.groups.begin(), setup.groups.end());
  all.push_back(kEveryAxis);
  for (const AxisSet axes : all) {
    const auto same = [&](AxisSet other) { return &mesh.over(other) == &mesh.over(axes); };
    if (mesh.over(axes).size() > 1 && std::none_of(groups.begin(), groups.end(), same))
      groups.push_back(axes);
  }
  return groups;
}

/// The share of this rank's peers in its group that live on other nodes: of what it sends, where every peer
/// gets as much.
inline double share_across_nodes(const RunSetup& setup, const Mesh& mesh, AxisSet axes) {
  const std::vector<int>& node_of = setup.topology.node_of;
  const int group = setup.mesh.group_of(axes, mesh.coord());
  int peers = 0, far = 0;
  for (int rank = 0; rank < setup.mesh.size(); ++rank) {
    if (rank == setup.ranks.rank() || setup.mesh.group_of(axes, setup.mesh.coord_of(rank)) != group) continue;
    ++peers;
    far += static_cast<int>(node_of[static_cast<std::size_t>(rank)] != setup.topology.node);
  }
  return static_cast<double>(far) / peers;
}

/// Prints on rank 0 a line for each group that moved something, and what the nodes' interfaces sent of it;
/// `sent` is what this node's did in these steps. Collective.
inline void print_traffic(const RunSetup& setup, const Mesh& mesh, int steps, double sent) {
  const bool prints = setup.ranks.rank() == 0;
  double counted = 0;
  for (const AxisSet axes : groups_of(setup, mesh)) {
    const Traffic& traffic = mesh.over(axes).traffic();
    const double bytes = static_cast<double>(traffic.bytes) / steps;
    std::vector<double> sums{bytes, bytes * share_across_nodes(setup, mesh, axes)};
    setup.ranks.sum(sums);
    counted += sums[1];
    if (prints && sums[0] > 0)
      std::printf("  %-14s %2d ranks %4lld calls  %9.3f MB sent, %9.3f MB to other nodes  wait %8.3f ms\n",
                  mesh.over(axes).name().c_str(), mesh.over(axes).size(),
                  static_cast<long long>(traffic.calls / steps), sums[0] * 1e-6, sums[1] * 1e-6,
                  1e3 * traffic.wait_seconds / steps);
  }
  if (setup.topology.node_count == 1 || setup.topology.rehearsed) return;
  std::vector<double> wire{setup.topology.local_rank == 0 ? sent / steps : 0};
  setup.ranks.sum(wire);
  if (prints)
    std::printf("wire_mb_per_step counted %.3f interfaces %.3f ratio %.3f\n", counted * 1e-6, wire[0] * 1e-6,
                wire[0] / counted);
}

}  // namespace dew::bench
