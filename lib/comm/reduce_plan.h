// How an all-reduce is cut up, for the transport that does it and the dry run that counts it.
#pragma once

#include <cstdint>

namespace dew {

/// Below this a gather of everything to everyone costs less than a second round of messages.
inline constexpr std::int64_t kGatherReduceBytes = 32 * 1024;

/// The first size * part elements are reduced a part a rank, then gathered. The last `tail` elements (fewer
/// than the ranks, or all of a small tensor) are gathered whole from every rank and summed everywhere.
struct ReducePlan {
  std::int64_t part = 0, tail = 0;

  ReducePlan(std::int64_t elements, std::int64_t element_bytes, int size) {
    part = elements * element_bytes > kGatherReduceBytes ? elements / size : 0;
    tail = elements - part * size;
  }
  std::int64_t scratch_elements(int size) const { return (part + tail) * size; }
  /// Elements that one rank sends to others.
  std::int64_t sent_elements(int size) const { return (size - 1) * (2 * part + tail); }
};

}  // namespace dew
