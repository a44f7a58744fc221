#include "train/chain_cut.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>

#include "base/check.h"

namespace dew {

int ChainCut::stage_of(int block) const {
  const auto after = std::upper_bound(first.begin(), first.end() - 1, block);
  return (static_cast<int>(after - first.begin()) - 1) % stages;
}

std::string ChainCut::str() const {
  std::string text;
  for (int p = 0; p < parts(); ++p) text += (p == 0 ? "" : " + ") + std::to_string(end(p) - begin(p));
  return text;
}

ChainCut whole_chain(int blocks) {
  return {1, 1, {0, blocks}};
}

namespace {

/// Whether `parts` parts can hold all blocks with no part above the bound: each takes what it can.
bool fits(std::span<const double> sums, int parts, double bound) {
  std::size_t begin = 0;
  for (int p = 0; p < parts && begin + 1 < sums.size(); ++p) {
    std::size_t end = begin;
    while (end + 1 < sums.size() && sums[end + 1] - sums[begin] <= bound) ++end;
    if (end == begin) return false;
    begin = end;
  }
  return begin + 1 == sums.size();
}

/// The least cost of the costliest part, by halving: bits of doubles that are not negative are in their
/// order.
double least_bound(std::span<const double> sums, int parts) {
  std::uint64_t low = 0, high = std::bit_cast<std::uint64_t>(sums.back());
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (fits(sums, parts, std::bit_cast<double>(middle)))
      high = middle;
    else
      low = middle + 1;
  }
  return std::bit_cast<double>(high);
}

}  // namespace

ChainCut cut_by_cost(std::span<const double> cost, int stages, int chunks) {
  const int parts = stages * chunks;
  DEW_CHECK(parts >= 1 && cost.size() >= static_cast<std::size_t>(parts), cost.size(), stages, chunks);
  std::vector<double> sums(cost.size() + 1, 0.0);
  std::partial_sum(cost.begin(), cost.end(), sums.begin() + 1);
  const double bound = least_bound(sums, parts);
  ChainCut cut{stages, chunks, std::vector<int>(static_cast<std::size_t>(parts) + 1, 0)};
  std::size_t n = cost.size();
  cut.first.back() = static_cast<int>(n);
  // From the end: each part takes what the bound allows, so that the first parts, which hold the most
  // microbatches, take the least.
  for (std::size_t p = static_cast<std::size_t>(parts); p > 1; --p) {
    std::size_t k = n - 1;
    while (k > p - 1 && sums[n] - sums[k - 1] <= bound) --k;
    cut.first[p - 1] = static_cast<int>(k);
    n = k;
  }
  return cut;
}

ChainCut cut_as_listed(std::span<const std::int64_t> layers, int stages, int chunks) {
  ChainCut cut{stages, chunks, {0}};
  for (std::int64_t count : layers) cut.first.push_back(cut.first.back() + static_cast<int>(count));
  for (std::size_t p = 1; p < cut.first.size(); ++p) ++cut.first[p];
  ++cut.first.back();
  return cut;
}

std::string cut_obstacle(std::span<const std::int64_t> layers, int blocks, int stages, int chunks) {
  const int parts = stages * chunks;
  const std::string cut = std::to_string(stages) + " stages" +
                          (chunks > 1 ? " x " + std::to_string(chunks) + " chunks" : std::string());
  if (layers.empty()) {
    if (blocks >= parts) return {};
    return cut + " are more parts than the " + std::to_string(blocks) + " blocks of the model";
  }
  if (layers.size() != static_cast<std::size_t>(parts))
    return "lists " + std::to_string(layers.size()) + " counts for " + cut +
           "; accepted: " + std::to_string(parts) + " counts";
  const std::int64_t sum = std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
  if (sum != blocks - 2)
    return "adds up to " + std::to_string(sum) + " layers; accepted: counts that add up to the " +
           std::to_string(blocks - 2) + " of the model";
  for (std::size_t p = 1; p + 1 < layers.size(); ++p)
    if (layers[p] == 0)
      return "leaves part " + std::to_string(p) + " without a block; accepted: 1 or more there";
  return {};
}

}  // namespace dew
