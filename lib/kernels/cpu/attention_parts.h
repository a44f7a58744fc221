// How the backward of attention is cut into tasks, and what becomes of their sums.
#pragma once

#include <omp.h>

#include <algorithm>

#include "kernels/cpu/attention_tiles.h"

namespace dew::kernels::cpu {

/// Tasks that a call should have at least, and copies of dq and keys a copy for it at most.
inline constexpr std::int64_t kWantedTasks = 16, kMostParts = 4, kKeysOfPart = 512;

/// Parts into which the keys of one head are cut. A task owns the dk and dv of one part of one head, so it
/// sums them alone and in order; each part has its own dq, summed in order at the end. Follows from the shape
/// alone.
inline std::int64_t key_parts(const AttentionShape& shape) {
  const std::int64_t heads = std::max<std::int64_t>(shape.samples * shape.kv_heads, 1);
  const std::int64_t wanted = (kWantedTasks + heads - 1) / heads;
  return std::clamp<std::int64_t>(std::min(wanted, shape.keys / kKeysOfPart), 1, kMostParts);
}

inline KeyRange part_of_keys(const AttentionShape& shape, std::int64_t part) {
  const std::int64_t tiles = (shape.keys + kTileKeys - 1) / kTileKeys, parts = key_parts(shape);
  return {std::min(tiles * part / parts * kTileKeys, shape.keys),
          std::min(tiles * (part + 1) / parts * kTileKeys, shape.keys)};
}

inline std::int64_t part_elements(const AttentionShape& shape) {
  return key_parts(shape) == 1 ? 0 : shape.samples * shape.queries * shape.heads * shape.width;
}

/// Threads that have a task.
inline std::int64_t backward_threads(const AttentionShape& shape) {
  const std::int64_t tasks = shape.samples * shape.kv_heads * key_parts(shape);
  return std::clamp<std::int64_t>(tasks, 1, attention_threads());
}

/// Keys of the longest part.
inline std::int64_t most_keys(const AttentionShape& shape) {
  std::int64_t most = 0;
  for (std::int64_t part = 0; part < key_parts(shape); ++part) {
    const KeyRange keys = part_of_keys(shape, part);
    most = std::max(most, keys.end - keys.begin);
  }
  return most;
}

template <class R>
void clear_rows(Matrix<R> rows, std::int64_t count, std::int64_t width) {
  for (std::int64_t j = 0; j < count; ++j) std::fill_n(rows.at(j, 0).first, width, R{0});
}

/// dq (+)= the sum of its parts, in their order.
template <class T>
void add_parts(const Real<T>* parts, std::int64_t count, std::int64_t n, T* dq, bool accumulate) {
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; ++i) {
    Real<T> sum = parts[i];
    for (std::int64_t part = 1; part < count; ++part) sum += parts[part * n + i];
    dq[i] = static_cast<T>(accumulate ? static_cast<Real<T>>(dq[i]) + sum : sum);
  }
}

}  // namespace dew::kernels::cpu
