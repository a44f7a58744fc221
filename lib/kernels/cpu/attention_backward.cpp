#include <omp.h>

#include <cmath>
#include <limits>

#include "kernels/cpu/attention_pairs.h"
#include "kernels/cpu/attention_parts.h"

namespace dew::kernels::cpu {
namespace {

/// One thread's tiles, of numbers stored as T.
template <class T>
struct Tiles {
  using R = Real<T>;
  Matrix<R> queries;              ///< [K, block], scaled by 1 / sqrt(K)
  Matrix<R> gradients;            ///< [K, block]: d_o
  Matrix<R> p, d_s;               ///< [tile, block]: probabilities, gradients of the scores
  Matrix<R> dq;                   ///< [block, K]
  R *log_sum_exp, *delta, *ones;  ///< [block]
  Matrix<R> q_room, d_o_room;     ///< [block, K]: widened rows
  Matrix<R> k_room, v_room;       ///< [tile, K]
  Matrix<R> dk_room, dv_room;     ///< [keys of a task, K]: sums that are rounded at the end

  Tiles(Scratch<R> scratch, std::int64_t k, std::int64_t keys)
      : queries(scratch.take(k, kBlockQueries)),
        gradients(scratch.take(k, kBlockQueries)),
        p(scratch.take(kTileKeys, kBlockQueries)),
        d_s(scratch.take(kTileKeys, kBlockQueries)),
        dq(scratch.take(kBlockQueries, k)),
        log_sum_exp(scratch.take(kBlockQueries)),
        delta(scratch.take(kBlockQueries)),
        ones(scratch.take(kBlockQueries)),
        q_room(scratch.take(staged<T>(kBlockQueries), k)),
        d_o_room(scratch.take(staged<T>(kBlockQueries), k)),
        k_room(scratch.take(staged<T>(kTileKeys), k)),
        v_room(scratch.take(staged<T>(kTileKeys), k)),
        dk_room(scratch.take(staged<T>(keys), k)),
        dv_room(scratch.take(staged<T>(keys), k)) {
    std::fill_n(ones, kBlockQueries, R{1});
  }

  static std::int64_t elements(std::int64_t k, std::int64_t keys) {
    return 3 * Scratch<R>::rounded(k * kBlockQueries) + 2 * kTileKeys * kBlockQueries +
           3 * Scratch<R>::rounded(kBlockQueries) + 2 * Scratch<R>::rounded(k * staged<T>(kBlockQueries)) +
           2 * Scratch<R>::rounded(k * staged<T>(kTileKeys)) + 2 * Scratch<R>::rounded(k * staged<T>(keys));
  }
};

/// Heads of one task. dk and dv begin at the task's first key.
template <class T>
struct Operands {
  Matrix<const T> q, k, v, o, d_o;
  const Real<T>* log_sum_exp;
  Matrix<Real<T>> dk, dv;
};

/// Rows of a block of queries, and a tile of keys, as they are computed with.
template <class R>
struct QueryRows {
  Matrix<const R> q, d_o;
};
template <class R>
struct KeyRows {
  Matrix<const R> k, v;
  std::int64_t begin;  ///< of the call's keys
  Matrix<R> dk, dv;
};

template <class T>
class HeadGradient {
 public:
  using R = Real<T>;

  HeadGradient(const AttentionShape& shape, const HeadContext& head, const Ops<R>& ops, const Tiles<T>& tiles)
      : shape_(shape),
        head_(head),
        ops_(ops),
        tiles_(tiles),
        scale_(static_cast<R>(1 / std::sqrt(static_cast<double>(shape.width)))) {}

  /// Adds one query head's part to dk and dv of `keys`; calls put(first query, queries) with dq of each block
  /// in the tiles.
  template <class Put>
  void run(const Operands<T>& x, KeyRange keys, Put&& put) const {
    const std::int64_t blocks = (shape_.queries + kBlockQueries - 1) / kBlockQueries, width = shape_.width;
    for (std::int64_t index = 0; index < blocks; ++index) {
      const QueryBlock block(shape_, index, ops_.matrix.lanes);
      const QueryRows<R> rows = prepare(x, block);
      for_tiles(shape_, head_, block, keys, [&](KeyRange tile, const TileMask& mask) {
        const std::int64_t count = tile.end - tile.begin, at = tile.begin - keys.begin;
        add_tile({as_real<T>(x.k.at(tile.begin, 0), count, width, tiles_.k_room),
                  as_real<T>(x.v.at(tile.begin, 0), count, width, tiles_.v_room), tile.begin, x.dk.at(at, 0),
                  x.dv.at(at, 0)},
                 rows, block, count, mask);
      });
      put(block.begin, block.rows());
    }
  }

 private:
  QueryRows<R> prepare(const Operands<T>& x, const QueryBlock& block) const {
    constexpr R kInfinity = std::numeric_limits<R>::infinity();
    const std::int64_t rows = block.rows(), width = shape_.width;
    const QueryRows<R> real{as_real<T>(x.q.at(block.begin, 0), rows, width, tiles_.q_room),
                            as_real<T>(x.d_o.at(block.begin, 0), rows, width, tiles_.d_o_room)};
    ops_.matrix.transpose(rows, width, scale_, real.q, tiles_.queries);
    ops_.matrix.transpose(rows, width, R{1}, real.d_o, tiles_.gradients);
    ops_.softmax.dot_rows(rows, width, as_real<T>(x.o.at(block.begin, 0), rows, width, tiles_.dq), real.d_o,
                          tiles_.delta);
    for (std::int64_t i = 0; i < block.width; ++i) {
      // A query that saw no key has -infinity: what comes of it is hidden in every tile.
      tiles_.log_sum_exp[i] = i < rows ? x.log_sum_exp[block.begin + i] : kInfinity;
      if (i >= rows) tiles_.delta[i] = 0;
    }
    std::fill_n(tiles_.dq.first, rows * width, R{0});
    return real;
  }

  void add_tile(const KeyRows<R>& x, const QueryRows<R>& rows, const QueryBlock& block, std::int64_t keys,
                const TileMask& mask) const {
    if (mask.partial) {
      std::fill_n(tiles_.p.first, keys * kBlockQueries, R{0});
      std::fill_n(tiles_.d_s.first, keys * kBlockQueries, R{0});
    }
    const std::int64_t lane_step = mask.partial ? ops_.matrix.lanes : block.width;
    for (std::int64_t lane = 0; lane < block.width; lane += lane_step) {
      const KeyRange seen = keys_of_lanes(mask, keys, lane, lane_step);
      if (seen.begin < seen.end) query_side(x, block, seen, mask, lane, lane_step);
    }
    const std::int64_t key_step = mask.partial ? ops_.matrix.lanes : keys;
    for (std::int64_t key = 0; key < keys; key += key_step) {
      const std::int64_t count = std::min(key_step, keys - key);
      const KeyRange lanes = lanes_of_keys(mask, block.width, ops_.matrix.lanes, key, count);
      key_side(x, rows, key, count, {lanes.begin, std::min(lanes.end, block.rows())});
    }
  }

  /// p and d_s of the lanes [lane, lane + lanes), and their dq.
  void query_side(const KeyRows<R>& x, const QueryBlock& block, KeyRange keys, const TileMask& mask,
                  std::int64_t lane, std::int64_t lanes) const {
    const std::int64_t count = keys.end - keys.begin, first = x.begin + keys.begin;
    const Matrix<R> p = tiles_.p.at(keys.begin, lane), d_s = tiles_.d_s.at(keys.begin, lane);
    const Matrix<const R> k = x.k.at(keys.begin, 0);
    ops_.matrix.multiply(count, lanes, shape_.width, k, tiles_.queries.at(0, lane), p, false);
    ops_.matrix.multiply(count, lanes, shape_.width, x.v.at(keys.begin, 0), tiles_.gradients.at(0, lane), d_s,
                         false);
    drop(shape_, head_, first, block.begin + lane, count, lanes, d_s);
    ops_.softmax.softmax_gradient(count, lanes, moved(mask, keys.begin, lane), R{1}, scale_, p, d_s,
                                  tiles_.log_sum_exp + lane, tiles_.delta + lane);
    drop(shape_, head_, first, block.begin + lane, count, lanes, p);
    ops_.matrix.multiply_transposed(std::min(lanes, block.rows() - lane), shape_.width, count, d_s, k,
                                    tiles_.dq.at(lane, 0), true);
  }

  /// dk and dv of `count` keys, from the queries of the lanes.
  void key_side(const KeyRows<R>& x, const QueryRows<R>& rows, std::int64_t key, std::int64_t count,
                KeyRange lanes) const {
    const std::int64_t queries = lanes.end - lanes.begin;
    if (queries <= 0) return;
    ops_.matrix.multiply(count, shape_.width, queries, tiles_.p.at(key, lanes.begin),
                         rows.d_o.at(lanes.begin, 0), x.dv.at(key, 0), true);
    ops_.matrix.multiply(count, shape_.width, queries, tiles_.d_s.at(key, lanes.begin),
                         rows.q.at(lanes.begin, 0), x.dk.at(key, 0), true);
  }

  const AttentionShape& shape_;
  const HeadContext& head_;
  const Ops<R>& ops_;
  const Tiles<T>& tiles_;
  R scale_;
};

/// One call: where everything lies.
template <class T>
struct Call {
  using R = Real<T>;
  const AttentionShape& shape;
  const Ops<R>& ops;
  const T *q, *k, *v, *o, *d_o;
  const R* log_sum_exp;
  T *dq, *dk, *dv;
  R* dq_parts;  ///< of part 0; those of the others follow from one another; null where there is one part
  std::int64_t part_stride;
  bool add_dq, add_dk, add_dv;

  void run(const Tiles<T>& tiles, std::int64_t sample, std::int64_t kv_head, std::int64_t part) const {
    const std::int64_t group = shape.heads / shape.kv_heads;
    const auto queries_of = [&](auto* first, std::int64_t h) {
      return head_of(first, sample, shape.queries, h, shape.heads, shape.width);
    };
    const auto keys_of = [&](auto* first) {
      return head_of(first, sample, shape.keys, kv_head, shape.kv_heads, shape.width);
    };
    const KeyRange keys = part_of_keys(shape, part);
    const Sums dk_sums = opened(keys_of(dk).at(keys.begin, 0), tiles.dk_room, keys, add_dk),
               dv_sums = opened(keys_of(dv).at(keys.begin, 0), tiles.dv_room, keys, add_dv);
    for (std::int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
      const Operands<T> x{.q = queries_of(q, h),
                          .k = keys_of(k),
                          .v = keys_of(v),
                          .o = queries_of(o, h),
                          .d_o = queries_of(d_o, h),
                          .log_sum_exp = log_sum_exp + (sample * shape.heads + h) * shape.queries,
                          .dk = dk_sums.sums,
                          .dv = dv_sums.sums};
      const HeadContext head(shape, sample, h);
      HeadGradient<T>(shape, head, ops, tiles).run(x, keys, [&](std::int64_t first, std::int64_t rows) {
        if (dq_parts != nullptr)
          put_rows<R>(ops, tiles.ones, tiles.dq, rows, shape.width,
                      queries_of(dq_parts + part * part_stride, h).at(first, 0), false);
        else
          put_rows<T>(ops, tiles.ones, tiles.dq, rows, shape.width, queries_of(dq, h).at(first, 0), add_dq);
      });
    }
    closed(dk_sums, keys, tiles);
    closed(dv_sums, keys, tiles);
  }

 private:
  /// Where a task sums dk or dv: in the result itself, or in scratch that is rounded into it at the end.
  struct Sums {
    Matrix<R> sums;
    Matrix<T> target;
    bool accumulate;
  };
  Sums opened(Matrix<T> target, Matrix<R> room, KeyRange keys, bool accumulate) const {
    Sums sums{room, target, accumulate};
    if constexpr (std::is_same_v<T, R>) {
      sums.sums = target;
      if (accumulate) return sums;
    }
    clear_rows(sums.sums, keys.end - keys.begin, shape.width);
    return sums;
  }
  void closed(const Sums& sums, KeyRange keys, const Tiles<T>& tiles) const {
    if constexpr (!std::is_same_v<T, R>)
      put_rows<T>(ops, tiles.ones, sums.sums, keys.end - keys.begin, shape.width, sums.target,
                  sums.accumulate);
  }
};

}  // namespace

std::int64_t attention_backward_scratch(const AttentionShape& shape, DType dtype) {
  if (multiplies_pairs(shape, dtype)) return attention_pairs_backward_scratch(shape);
  return visit_compute(dtype, [&](auto zero) {
    return backward_threads(shape) * Tiles<decltype(zero)>::elements(shape.width, most_keys(shape)) +
           key_parts(shape) * part_elements(shape);
  });
}

void attention_backward(const AttentionShape& shape, const AttentionPass& pass, const Target& dq,
                        const Target& dk, const Target& dv, const Tensor& scratch) {
  if (multiplies_pairs(shape, pass.q.dtype())) {
    attention_pairs_backward(shape, pass, dq, dk, dv, scratch);
    return;
  }
  visit_compute(pass.q.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using R = Real<T>;
    const Ops<R> ops;
    const std::int64_t parts = key_parts(shape), tasks = shape.samples * shape.kv_heads * parts;
    const std::int64_t threads = backward_threads(shape), stride = part_elements(shape),
                       keys = most_keys(shape);
    const std::int64_t tile_elements = Tiles<T>::elements(shape.width, keys);
    R* tiles_begin = scratch.data<R>();
    R* dq_parts = tiles_begin + threads * tile_elements;
    const Call<T> call{.shape = shape,
                       .ops = ops,
                       .q = pass.q.data<T>(),
                       .k = pass.k.data<T>(),
                       .v = pass.v.data<T>(),
                       .o = pass.o.data<T>(),
                       .d_o = pass.d_o.data<T>(),
                       .log_sum_exp = pass.log_sum_exp.data<R>(),
                       .dq = dq.into.data<T>(),
                       .dk = dk.into.data<T>(),
                       .dv = dv.into.data<T>(),
                       .dq_parts = parts > 1 ? dq_parts : nullptr,
                       .part_stride = stride,
                       .add_dq = dq.accumulate,
                       .add_dk = dk.accumulate,
                       .add_dv = dv.accumulate};
#pragma omp parallel num_threads(static_cast <int>(threads))
    {
      const Tiles<T> tiles(Scratch<R>(tiles_begin + omp_get_thread_num() * tile_elements), shape.width, keys);
#pragma omp for schedule(dynamic)
      for (std::int64_t task = 0; task < tasks; ++task)
        call.run(tiles, task / parts / shape.kv_heads, task / parts % shape.kv_heads, task % parts);
    }
    if (parts > 1) add_parts(dq_parts, parts, stride, dq.into.data<T>(), dq.accumulate);
  });
}

}  // namespace dew::kernels::cpu
