// Whole tensors from shards, for the comparison of layouts. Never used while training.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "comm/host_group.h"
#include "train/engine.h"

namespace dew {

/// The values of every parameter of the model as one f64 vector each, on every rank: `local` names the
/// tensor of a parameter's shard. Exact: each element has one owner. Collective over `ranks`.
template <class Local>
std::vector<std::vector<double>> gather_whole(const ParamStore& store, const HostGroup& ranks,
                                              const Local& local);

/// Reads one parameter's shard into its place in a zeroed whole tensor.
void place_owned(const ParamStore& store, const ShardedParameter& param, const Tensor& shard,
                 std::span<double> whole);

template <class Local>
std::vector<std::vector<double>> gather_whole(const ParamStore& store, const HostGroup& ranks,
                                              const Local& local) {
  std::vector<std::vector<double>> all;
  for (std::size_t i = 0; i < store.specs().size(); ++i) {
    std::vector<double> whole(static_cast<std::size_t>(store.specs()[i].shape.numel()), 0.0);
    const ShardedParameter* param = store.find(static_cast<int>(i));
    if (param != nullptr && param->owned) place_owned(store, *param, local(*param), whole);
    // In pieces: a sum in rank order holds every rank's part of it at one time.
    constexpr std::size_t kPiece = 1 << 16;
    for (std::size_t at = 0; at < whole.size(); at += kPiece)
      ranks.sum(std::span<double>(whole).subspan(at, std::min(kPiece, whole.size() - at)));
    all.push_back(std::move(whole));
  }
  return all;
}

}  // namespace dew
