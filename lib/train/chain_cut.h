// Which blocks of the chain live on which stage.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/action.h"

namespace dew {

/// The chain cut into one contiguous part a virtual stage. Virtual stage v runs on stage v % stages as its
/// chunk v / stages.
struct ChainCut {
  int stages = 1, chunks = 1;
  std::vector<int> first{0, 0};  ///< part v holds blocks [first[v], first[v + 1])

  int blocks() const { return first.back(); }
  int part(int stage, int chunk) const { return chunk * stages + stage; }
  int begin(int part) const { return first[static_cast<std::size_t>(part)]; }
  int end(int part) const { return first[static_cast<std::size_t>(part) + 1]; }
  int parts() const { return stages * chunks; }
  int stage_of(int block) const;
  /// "stage 0: embed, layers.0-5; stage 1: layers.6-11, head" is the console's; here the counts: "7 + 7".
  std::string str() const;
};

/// Everything on one stage.
ChainCut whole_chain(int blocks);

/// Cuts the chain so that the costliest part is as cheap as can be; among those cuts, earlier parts take
/// less. Every part gets at least one block. Needs as many blocks as parts.
ChainCut cut_by_cost(std::span<const double> cost, int stages, int chunks);

/// Cuts as listed: `layers` counts the blocks of each part without the first block of the chain, which joins
/// the first part, and the last one, which joins the last.
ChainCut cut_as_listed(std::span<const std::int64_t> layers, int stages, int chunks);

/// Empty, or why the chain cannot be cut so, with the numbers; `layers` empty: by cost.
std::string cut_obstacle(std::span<const std::int64_t> layers, int blocks, int stages, int chunks);

}  // namespace dew
