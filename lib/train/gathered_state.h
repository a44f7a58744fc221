// Whole tensors from shards, for the comparison of layouts. Never used while training.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "comm/host_group.h"
#include "train/engine.h"

namespace dew {

/// Every parameter's values as one f64 vector a parameter, on every rank: `local` names the tensor of a
/// parameter's shard. Exact: each element has one owner. Collective over `ranks`.
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
  for (const ShardedParameter& param : store.params()) {
    std::vector<double> whole(static_cast<std::size_t>(param.spec.shape.numel()), 0.0);
    if (param.owned) place_owned(store, param, local(param), whole);
    // In pieces: a sum in rank order holds every rank's part of it at one time.
    constexpr std::size_t kPiece = 1 << 16;
    for (std::size_t at = 0; at < whole.size(); at += kPiece)
      ranks.sum(std::span<double>(whole).subspan(at, std::min(kPiece, whole.size() - at)));
    all.push_back(std::move(whole));
  }
  return all;
}

}  // namespace dew
