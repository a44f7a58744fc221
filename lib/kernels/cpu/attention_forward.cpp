#include <omp.h>

#include <cmath>
#include <limits>

#include "kernels/cpu/attention_pairs.h"
#include "kernels/cpu/attention_tiles.h"

namespace dew::kernels::cpu {
namespace {

/// One thread's tiles, of numbers stored as T.
template <class T>
struct Tiles {
  using R = Real<T>;
  Matrix<R> queries;                 ///< [K, block], scaled by 1 / sqrt(K)
  Matrix<R> scores;                  ///< [tile, block]
  Matrix<R> sums;                    ///< [block, K]: o before its division
  R *largest, *sum, *factor;         ///< [block]
  Matrix<R> q_room, k_room, v_room;  ///< [block or tile, K]: widened rows

  Tiles(Scratch<R> scratch, std::int64_t k)
      : queries(scratch.take(k, kBlockQueries)),
        scores(scratch.take(kTileKeys, kBlockQueries)),
        sums(scratch.take(kBlockQueries, k)),
        largest(scratch.take(kBlockQueries)),
        sum(scratch.take(kBlockQueries)),
        factor(scratch.take(kBlockQueries)),
        q_room(scratch.take(staged<T>(kBlockQueries), k)),
        k_room(scratch.take(staged<T>(kTileKeys), k)),
        v_room(scratch.take(staged<T>(kTileKeys), k)) {}

  static std::int64_t elements(std::int64_t k) {
    return 2 * Scratch<R>::rounded(k * kBlockQueries) + kTileKeys * kBlockQueries +
           3 * Scratch<R>::rounded(kBlockQueries) + Scratch<R>::rounded(k * staged<T>(kBlockQueries)) +
           2 * Scratch<R>::rounded(k * staged<T>(kTileKeys));
  }
};

/// A tile of keys and values as they are computed with, and its first key.
template <class R>
struct KeyTile {
  Matrix<const R> k, v;
  std::int64_t begin;
};

/// Takes the keys `seen` of the tile into the lanes [lane, lane + lanes) of the block.
template <class T>
void add_keys(const AttentionShape& shape, const HeadContext& head, const Ops<Real<T>>& ops,
              const Tiles<T>& tiles, const QueryBlock& block, const KeyTile<Real<T>>& tile, KeyRange seen,
              const TileMask& mask, std::int64_t lane, std::int64_t lanes) {
  using R = Real<T>;
  const std::int64_t count = seen.end - seen.begin, rows = std::min(lanes, block.rows() - lane),
                     width = shape.width;
  const Matrix<R> scores = tiles.scores.at(0, lane), sums = tiles.sums.at(lane, 0);
  ops.matrix.multiply(count, lanes, width, tile.k.at(seen.begin, 0), tiles.queries.at(0, lane), scores,
                      false);
  ops.softmax.softmax_step(count, lanes, mask, R{1}, scores, tiles.largest + lane, tiles.sum + lane,
                           tiles.factor + lane);
  drop(shape, head, tile.begin + seen.begin, block.begin + lane, count, lanes, scores);
  ops.softmax.scale_rows(rows, width, tiles.factor + lane, sums, sums, false);
  ops.matrix.multiply_transposed(rows, width, count, scores, tile.v.at(seen.begin, 0), sums, true);
}

template <class T>
void forward_block(const AttentionShape& shape, const HeadContext& head, const Ops<Real<T>>& ops,
                   const Tiles<T>& tiles, const QueryBlock& block, Matrix<const T> q, Matrix<const T> k,
                   Matrix<const T> v, Matrix<T> o, Real<T>* log_sum_exp) {
  using R = Real<T>;
  constexpr R kInfinity = std::numeric_limits<R>::infinity();
  const R scale = static_cast<R>(1 / std::sqrt(static_cast<double>(shape.width)));
  ops.matrix.transpose(block.rows(), shape.width, scale,
                       as_real<T>(q.at(block.begin, 0), block.rows(), shape.width, tiles.q_room),
                       tiles.queries);
  std::fill_n(tiles.largest, block.width, -kInfinity);
  std::fill_n(tiles.sum, block.width, R{0});
  std::fill_n(tiles.sums.first, block.rows() * shape.width, R{0});
  for_tiles(shape, head, block, {0, shape.keys}, [&](KeyRange keys, const TileMask& mask) {
    const std::int64_t count = keys.end - keys.begin;
    const KeyTile<R> tile{as_real<T>(k.at(keys.begin, 0), count, shape.width, tiles.k_room),
                          as_real<T>(v.at(keys.begin, 0), count, shape.width, tiles.v_room), keys.begin};
    const std::int64_t step = mask.partial ? ops.matrix.lanes : block.width;
    for (std::int64_t lane = 0; lane < block.width; lane += step) {
      const KeyRange seen = keys_of_lanes(mask, count, lane, step);
      if (seen.begin < seen.end)
        add_keys(shape, head, ops, tiles, block, tile, seen, moved(mask, seen.begin, lane), lane, step);
    }
  });
  for (std::int64_t i = 0; i < block.rows(); ++i) {
    const bool blind = tiles.largest[i] == -kInfinity && tiles.sum[i] == 0;
    log_sum_exp[block.begin + i] = blind ? -kInfinity : tiles.largest[i] + std::log(tiles.sum[i]);
    tiles.factor[i] = blind ? R{0} : 1 / tiles.sum[i];
  }
  if constexpr (std::is_same_v<T, R>) {
    ops.softmax.scale_rows(block.rows(), shape.width, tiles.factor, tiles.sums, o.at(block.begin, 0), false);
  } else {
    ops.softmax.scale_rows(block.rows(), shape.width, tiles.factor, tiles.sums, tiles.sums, false);
    put_rows<T>(ops, nullptr, tiles.sums, block.rows(), shape.width, o.at(block.begin, 0), false);
  }
}

}  // namespace

std::int64_t attention_threads() {
  return omp_in_parallel() != 0 ? 1 : omp_get_max_threads();
}

std::int64_t attention_forward_scratch(const AttentionShape& shape, DType dtype) {
  if (multiplies_pairs(shape, dtype)) return attention_pairs_forward_scratch(shape);
  return visit_compute(
      dtype, [&](auto zero) { return attention_threads() * Tiles<decltype(zero)>::elements(shape.width); });
}

void attention_forward(const AttentionShape& shape, const Tensor& q, const Tensor& k, const Tensor& v,
                       const Tensor& o, const Tensor& log_sum_exp, const Tensor& scratch) {
  if (multiplies_pairs(shape, q.dtype())) {
    attention_pairs_forward(shape, q, k, v, o, log_sum_exp, scratch);
    return;
  }
  visit_compute(q.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using R = Real<T>;
    const Ops<R> ops;
    const T *q0 = q.data<T>(), *k0 = k.data<T>(), *v0 = v.data<T>();
    T* o0 = o.data<T>();
    R *lse0 = log_sum_exp.data<R>(), *scratch0 = scratch.data<R>();
    const std::int64_t blocks = (shape.queries + kBlockQueries - 1) / kBlockQueries;
    const std::int64_t tasks = shape.samples * shape.heads * blocks, group = shape.heads / shape.kv_heads;
#pragma omp parallel num_threads(static_cast <int>(attention_threads()))
    {
      const Tiles<T> tiles(Scratch<R>(scratch0 + omp_get_thread_num() * Tiles<T>::elements(shape.width)),
                           shape.width);
#pragma omp for schedule(dynamic)
      for (std::int64_t task = 0; task < tasks; ++task) {
        const std::int64_t b = task / blocks / shape.heads, h = task / blocks % shape.heads;
        // The last queries see the most keys: they go first, so that no thread is left alone with them.
        const QueryBlock block(shape, blocks - 1 - task % blocks, ops.matrix.lanes);
        forward_block<T>(shape, HeadContext(shape, b, h), ops, tiles, block,
                         head_of(q0, b, shape.queries, h, shape.heads, shape.width),
                         head_of(k0, b, shape.keys, h / group, shape.kv_heads, shape.width),
                         head_of(v0, b, shape.keys, h / group, shape.kv_heads, shape.width),
                         head_of(o0, b, shape.queries, h, shape.heads, shape.width),
                         lse0 + (b * shape.heads + h) * shape.queries);
      }
    }
  });
}

}  // namespace dew::kernels::cpu
