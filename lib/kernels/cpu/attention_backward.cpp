#include <algorithm>
#include <cmath>

#include "kernels/cpu/attention_backward_call.h"
#include "kernels/cpu/attention_pairs.h"

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

  template <class Put>
  void run(const BackwardOperands<T>& x, KeyRange keys, Put&& put) const {
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
  QueryRows<R> prepare(const BackwardOperands<T>& x, const QueryBlock& block) const {
    const std::int64_t rows = block.rows(), width = shape_.width;
    const QueryRows<R> real{as_real<T>(x.q.at(block.begin, 0), rows, width, tiles_.q_room),
                            as_real<T>(x.d_o.at(block.begin, 0), rows, width, tiles_.d_o_room)};
    ops_.matrix.transpose(rows, width, scale_, real.q, tiles_.queries);
    ops_.matrix.transpose(rows, width, R{1}, real.d_o, tiles_.gradients);
    ops_.softmax.dot_rows(rows, width, as_real<T>(x.o.at(block.begin, 0), rows, width, tiles_.dq), real.d_o,
                          tiles_.delta);
    load_lanes(x.log_sum_exp + block.begin, rows, block.width, tiles_.log_sum_exp, tiles_.delta);
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

/// T itself, or widened to what it is computed in.
template <class T>
struct RealForm {
  using Stored = T;
  using Ops = cpu::Ops<Real<T>>;
  using Tiles = cpu::Tiles<T>;
  using Head = HeadGradient<T>;
};

}  // namespace

std::int64_t attention_backward_scratch(const AttentionShape& shape, DType dtype) {
  if (multiplies_pairs(shape, dtype)) return attention_pairs_backward_scratch(shape);
  return visit_compute(dtype,
                       [&](auto zero) { return BackwardCall<RealForm<decltype(zero)>>::scratch(shape); });
}

void attention_backward(const AttentionShape& shape, const AttentionPass& pass, const Target& dq,
                        const Target& dk, const Target& dv, const Tensor& scratch) {
  if (multiplies_pairs(shape, pass.q.dtype())) {
    attention_pairs_backward(shape, pass, dq, dk, dv, scratch);
    return;
  }
  visit_compute(pass.q.dtype(), [&](auto zero) {
    BackwardCall<RealForm<decltype(zero)>>(shape, pass, dq, dk, dv, scratch).run();
  });
}

}  // namespace dew::kernels::cpu
