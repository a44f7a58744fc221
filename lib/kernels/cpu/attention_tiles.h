// How attention is cut: blocks of queries, tiles of keys, and the parts of a tile that a mask leaves to
// compute.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/dropout.h"
#include "kernels/cpu/simd/attention_table.h"

namespace dew::kernels::cpu {

/// Queries of a block and keys of a tile: the scores of one and what they multiply stay in the nearest
/// caches.
inline constexpr std::int64_t kBlockQueries = 64;
inline constexpr std::int64_t kTileKeys = 64;

/// Wider than any sequence, and far from overflow.
inline constexpr std::int64_t kNoWindow = std::int64_t{1} << 60;

/// Threads that a call may use. Scratch is cut into as many parts.
std::int64_t attention_threads();

/// The inner loops on this processor.
template <class T>
struct Ops {
  const MatrixOps<T>& matrix = matrix_ops<T>();
  const AttentionOps<T>& softmax = attention_ops<T>();
};

/// Hands out parts of one thread's scratch, each starting on a cache line.
template <class T>
class Scratch {
 public:
  explicit Scratch(T* begin) : next_(begin) {}

  static constexpr std::int64_t rounded(std::int64_t elements) {
    constexpr std::int64_t kLine = 64 / sizeof(T);
    return (elements + kLine - 1) / kLine * kLine;
  }
  T* take(std::int64_t elements) {
    T* part = next_;
    next_ += rounded(elements);
    return part;
  }
  Matrix<T> take(std::int64_t rows, std::int64_t columns) { return {take(rows * columns), columns}; }

 private:
  T* next_;
};

/// Rows of one head of [B, L, H, K].
template <class T>
Matrix<T> head_of(T* first, std::int64_t sample, std::int64_t rows, std::int64_t head, std::int64_t heads,
                  std::int64_t width) {
  return {first + (sample * rows * heads + head) * width, heads * width};
}

/// The queries [begin, end) of a block; lanes past `end` up to `width` hold zeros.
struct QueryBlock {
  std::int64_t begin = 0, end = 0;
  std::int64_t width = 0;

  QueryBlock(const AttentionShape& shape, std::int64_t index, std::int64_t lanes)
      : begin(index * kBlockQueries), end(std::min(begin + kBlockQueries, shape.queries)) {
    width = (end - begin + lanes - 1) / lanes * lanes;
  }
  std::int64_t rows() const { return end - begin; }
};

/// What one head of one sample has for itself.
struct HeadContext {
  const std::int32_t* starts = nullptr;  ///< [queries] of its sample; null without documents
  bool drops = false;
  DropoutDraw draw{};

  HeadContext(const AttentionShape& shape, std::int64_t sample, std::int64_t head) {
    const AttentionMask& mask = shape.mask;
    if (mask.starts.defined())
      starts = mask.starts.data<std::int32_t>() + sample * mask.starts.dim(1) + mask.query_begin;
    constexpr int kHeadBits = 24;  // of the generator's counter
    const AttentionDropout& dropout = shape.dropout;
    drops = dropout.draw.active();
    if (drops)
      draw = draw_of(dropout.draw, ((dropout.first_row + sample) << kHeadBits) + dropout.first_head + head);
  }
};

/// Rows as what they are computed in: themselves, or widened into `room`.
template <class T>
Matrix<const Real<T>> as_real(Matrix<const T> x, std::int64_t rows, std::int64_t width,
                              Matrix<Real<T>> room) {
  if constexpr (std::is_same_v<T, Real<T>>) {
    return x;
  } else {
    for (std::int64_t r = 0; r < rows; ++r)
      simd_table().bf16_to_f32.cast(x.at(r, 0).first, room.at(r, 0).first, width);
    return room;
  }
}

/// y = x, or y += x, row by row; x, which may be changed, is rounded once.
template <class T>
void put_rows(const Ops<Real<T>>& ops, const Real<T>* ones, Matrix<Real<T>> x, std::int64_t rows,
              std::int64_t width, Matrix<T> y, bool accumulate) {
  if constexpr (std::is_same_v<T, Real<T>>) {
    ops.softmax.scale_rows(rows, width, ones, x, y, accumulate);
  } else {
    for (std::int64_t r = 0; r < rows; ++r) {
      float* from = x.at(r, 0).first;
      T* to = y.at(r, 0).first;
      if (accumulate) simd_table().bf16_to_f32.add(to, from, width);
      simd_table().f32_to_bf16(from, to, width);
    }
  }
}

/// Rows of scratch for `as_real`: none where nothing is widened.
template <class T>
constexpr std::int64_t staged(std::int64_t rows) {
  return std::is_same_v<T, Real<T>> ? 0 : rows;
}

/// Drops weights of `keys` rows from key `key` of the call on, of the queries from `query` on.
template <class T>
void drop(const AttentionShape& shape, const HeadContext& head, std::int64_t key, std::int64_t query,
          std::int64_t keys, std::int64_t lanes, Matrix<T> weights) {
  if (!head.drops) return;
  const auto& ops = simd_ops<T>();
  for (std::int64_t j = 0; j < keys; ++j) {
    T* row = weights.at(j, 0).first;
    ops.dropout_line(head.draw, shape.mask.key_begin + key + j, shape.mask.query_begin + query, row, row,
                     false, lanes);
  }
}

/// Fills before[i] for the lanes of a tile whose first key is `key`; true where it hides something.
inline bool documents_in_tile(const AttentionShape& shape, const std::int32_t* starts,
                              const QueryBlock& block, std::int64_t key, float* before) {
  const std::int64_t first = shape.mask.key_begin + key;
  if (starts[block.end - 1] <= first) return false;
  for (std::int64_t i = 0; i < block.width; ++i)
    before[i] =
        i < block.rows()
            ? static_cast<float>(std::clamp<std::int64_t>(starts[block.begin + i] - first, 0, kTileKeys))
            : 0.0f;
  return true;
}

/// Calls body(keys, mask) for every tile of keys within `range` that the block sees, in the order of the
/// keys; tiles start at multiples of kTileKeys. mask.first is that of the tile's first key and the block's
/// first lane.
template <class Body>
void for_tiles(const AttentionShape& shape, const HeadContext& head, const QueryBlock& block, KeyRange range,
               Body&& body) {
  float before[kBlockQueries];
  const KeyRange seen = visible_keys(shape, block.begin, block.end);
  const std::int64_t document =
      head.starts != nullptr ? head.starts[block.begin] - shape.mask.key_begin : seen.begin;
  const std::int64_t begin = std::max({seen.begin, range.begin, document}),
                     end = std::min(seen.end, range.end);
  for (std::int64_t j = begin; j < end;) {
    const std::int64_t behind = std::min((j / kTileKeys + 1) * kTileKeys, end);
    TileMask mask{.window = kNoWindow};
    if (shape.mask.causal) {
      mask.first = shape.mask.key_begin + j - shape.mask.query_begin - block.begin;
      if (shape.mask.window > 0) mask.window = std::min(kNoWindow, shape.mask.window);
      mask.partial = mask.first + (behind - j) - 1 > 0 || mask.first + mask.window < block.rows();
      if (head.starts != nullptr && documents_in_tile(shape, head.starts, block, j, before)) {
        mask.before = before;
        mask.partial = true;
      }
    }
    body(KeyRange{j, behind}, mask);
    j = behind;
  }
}

/// Keys of a tile, counted from its first, of which some lane in [lane, lane + lanes) sees one.
inline KeyRange keys_of_lanes(const TileMask& mask, std::int64_t keys, std::int64_t lane,
                              std::int64_t lanes) {
  if (!mask.partial) return {0, keys};
  const std::int64_t end = std::clamp<std::int64_t>(lane + lanes - mask.first, 0, keys);
  const std::int64_t begin = std::clamp<std::int64_t>(lane - mask.first - mask.window + 1, 0, end);
  if (mask.before == nullptr) return {begin, end};
  // Documents begin later and later: the first lane's begins first.
  return {std::clamp<std::int64_t>(static_cast<std::int64_t>(mask.before[lane]), begin, end), end};
}

/// Lanes, in whole vectors, of which some sees one of the keys [key, key + keys) of a tile.
inline KeyRange lanes_of_keys(const TileMask& mask, std::int64_t width, std::int64_t lanes, std::int64_t key,
                              std::int64_t keys) {
  if (!mask.partial) return {0, width};
  const std::int64_t begin = std::clamp<std::int64_t>(mask.first + key, 0, width) / lanes * lanes;
  const std::int64_t end = std::clamp<std::int64_t>(mask.first + key + keys - 1 + mask.window, begin, width);
  return {begin, end};
}

/// The mask as seen from `key` and `lane` of the tile.
inline TileMask moved(TileMask mask, std::int64_t key, std::int64_t lane) {
  mask.first += key - lane;
  mask.row += key;
  if (mask.before != nullptr) mask.before += lane;
  return mask;
}

}  // namespace dew::kernels::cpu
