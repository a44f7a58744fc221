// Checksums of datasets: sums of element hashes, so that shards combine in any order.
#pragma once

#include <cstdint>
#include <span>

#include "comm/layout.h"

namespace dew {

/// Sum modulo 2^64 of element_hash over elements that follow one another in the global order, from `first`
/// on.
std::uint64_t hash_run(std::uint64_t first, std::span<const float> elements);
std::uint64_t hash_run(std::uint64_t first, std::span<const double> elements);

/// The same over a box whose elements lie in order at `elements`.
template <class T>
std::uint64_t hash_box(const Slab& box, const T* elements);

}  // namespace dew
