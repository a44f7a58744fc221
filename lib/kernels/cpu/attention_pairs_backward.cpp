#include <algorithm>
#include <cmath>

#include "kernels/cpu/attention_backward_call.h"
#include "kernels/cpu/attention_pair_tiles.h"
#include "kernels/cpu/attention_pairs.h"

namespace dew::kernels::cpu {
namespace {

/// One thread's tiles.
struct Tiles {
  Matrix<Pair> queries, gradients;           ///< [K / 2, block], in pairs along K: q, d_o
  Matrix<Pair> query_pairs, gradient_pairs;  ///< [block / 2, K], in pairs of queries
  Matrix<Pair> key_pairs;                    ///< [tile / 2, K], in pairs of keys
  Matrix<float> p, d_s;                      ///< [tile, block]: probabilities, gradients of the scores
  Matrix<bf16> p_rows, d_s_rows;             ///< the same, rounded
  Matrix<Pair> d_s_pairs;                    ///< [tile / 2, block], in pairs of keys
  Matrix<float> dq, room;                    ///< [block, K]
  Matrix<float> dk_room, dv_room;            ///< [keys of a task, K]: sums that are rounded at the end
  float *log_sum_exp, *delta, *ones;         ///< [block]

  Tiles(Scratch<float> scratch, std::int64_t k, std::int64_t keys)
      : queries(take_pairs(scratch, k / 2, kBlockQueries)),
        gradients(take_pairs(scratch, k / 2, kBlockQueries)),
        query_pairs(take_pairs(scratch, kBlockQueries / 2, k)),
        gradient_pairs(take_pairs(scratch, kBlockQueries / 2, k)),
        key_pairs(take_pairs(scratch, kTileKeys / 2, k)),
        p(scratch.take(kTileKeys, kBlockQueries)),
        d_s(scratch.take(kTileKeys, kBlockQueries)),
        p_rows(rounded_rows(scratch)),
        d_s_rows(rounded_rows(scratch)),
        d_s_pairs(take_pairs(scratch, kTileKeys / 2, kBlockQueries)),
        dq(scratch.take(kBlockQueries, k)),
        room(scratch.take(kBlockQueries, k)),
        dk_room(scratch.take(keys, k)),
        dv_room(scratch.take(keys, k)),
        log_sum_exp(scratch.take(kBlockQueries)),
        delta(scratch.take(kBlockQueries)),
        ones(scratch.take(kBlockQueries)) {
    std::fill_n(ones, kBlockQueries, 1.0f);
  }

  static std::int64_t elements(std::int64_t k, std::int64_t keys) {
    const auto rounded = [](std::int64_t n) { return Scratch<float>::rounded(n); };
    constexpr std::int64_t kTile = kTileKeys * kBlockQueries;
    return 2 * rounded(k / 2 * kBlockQueries) + 2 * rounded(kBlockQueries / 2 * k) +
           rounded(kTileKeys / 2 * k) + 2 * kTile + 3 * kTile / 2 + 2 * rounded(kBlockQueries * k) +
           2 * rounded(keys * k) + 3 * rounded(kBlockQueries);
  }

 private:
  static Matrix<bf16> rounded_rows(Scratch<float>& scratch) {
    return {reinterpret_cast<bf16*>(scratch.take(kTileKeys * kBlockQueries / 2)), kBlockQueries};
  }
};

using Operands = BackwardOperands<bf16>;

class HeadGradient {
 public:
  HeadGradient(const AttentionShape& shape, const HeadContext& head, const PairOps& ops, const Tiles& tiles)
      : shape_(shape),
        head_(head),
        ops_(ops),
        tiles_(tiles),
        scale_(static_cast<float>(1 / std::sqrt(static_cast<double>(shape.width)))) {}

  template <class Put>
  void run(const Operands& x, KeyRange keys, Put&& put) const {
    const std::int64_t blocks = (shape_.queries + kBlockQueries - 1) / kBlockQueries;
    for (std::int64_t index = 0; index < blocks; ++index) {
      const QueryBlock block(shape_, index, ops_.lanes);
      prepare(x, block);
      for_tiles(shape_, head_, block, keys, [&](KeyRange tile, const TileMask& mask) {
        add_tile(x, block, tile, tile.begin - keys.begin, mask);
      });
      put(block.begin, block.rows());
    }
  }

 private:
  void prepare(const Operands& x, const QueryBlock& block) const {
    const std::int64_t rows = block.rows(), width = shape_.width;
    const Matrix<const bf16> q = x.q.at(block.begin, 0), d_o = x.d_o.at(block.begin, 0);
    pack_lanes(ops_, q, block, width, tiles_.queries);
    pack_lanes(ops_, d_o, block, width, tiles_.gradients);
    ops_.packing.interleave(rows, width, q, tiles_.query_pairs);
    ops_.packing.interleave(rows, width, d_o, tiles_.gradient_pairs);
    ops_.softmax.dot_rows(rows, width, as_real<bf16>(x.o.at(block.begin, 0), rows, width, tiles_.dq),
                          as_real<bf16>(d_o, rows, width, tiles_.room), tiles_.delta);
    load_lanes(x.log_sum_exp + block.begin, rows, block.width, tiles_.log_sum_exp, tiles_.delta);
    std::fill_n(tiles_.dq.first, rows * width, 0.0f);
  }

  void add_tile(const Operands& x, const QueryBlock& block, KeyRange tile, std::int64_t at,
                const TileMask& mask) const {
    const std::int64_t keys = tile.end - tile.begin;
    if (mask.partial) {
      std::fill_n(tiles_.p.first, keys * kBlockQueries, 0.0f);
      std::fill_n(tiles_.d_s.first, keys * kBlockQueries, 0.0f);
    }
    const Matrix<const bf16> k = x.k.at(tile.begin, 0), v = x.v.at(tile.begin, 0);
    ops_.packing.interleave(keys, shape_.width, k, tiles_.key_pairs);
    const std::int64_t lane_step = mask.partial ? ops_.lanes : block.width;
    for (std::int64_t lane = 0; lane < block.width; lane += lane_step) {
      const KeyRange seen = even(keys_of_lanes(mask, keys, lane, lane_step), keys);
      if (seen.begin < seen.end)
        query_side(as_pairs(k), as_pairs(v), block, tile.begin, seen, mask, lane, lane_step);
    }
    ops_.products.narrow_rows(keys, block.width, tiles_.p, tiles_.p_rows);
    ops_.products.narrow_rows(keys, block.width, tiles_.d_s, tiles_.d_s_rows);
    const std::int64_t key_step = mask.partial ? ops_.lanes : keys;
    for (std::int64_t key = 0; key < keys; key += key_step) {
      const std::int64_t count = std::min(key_step, keys - key);
      const KeyRange lanes = lanes_of_keys(mask, block.width, ops_.lanes, key, count);
      key_side(x, at + key, key, count, {lanes.begin, std::min(lanes.end, block.rows())});
    }
  }

  /// p and d_s of the lanes [lane, lane + lanes), and their dq.
  void query_side(Matrix<const Pair> k, Matrix<const Pair> v, const QueryBlock& block,
                  std::int64_t tile_begin, KeyRange keys, const TileMask& mask, std::int64_t lane,
                  std::int64_t lanes) const {
    const std::int64_t count = keys.end - keys.begin, first = tile_begin + keys.begin,
                       pairs = shape_.width / 2;
    const Matrix<float> p = tiles_.p.at(keys.begin, lane), d_s = tiles_.d_s.at(keys.begin, lane);
    const PairProducts<float>& products = ops_.products.wide;
    products.multiply(count, lanes, pairs, k.at(keys.begin, 0), tiles_.queries.at(0, lane), p, false);
    products.multiply(count, lanes, pairs, v.at(keys.begin, 0), tiles_.gradients.at(0, lane), d_s, false);
    drop(shape_, head_, first, block.begin + lane, count, lanes, d_s);
    ops_.softmax.softmax_gradient(count, lanes, moved(mask, keys.begin, lane), scale_, scale_, p, d_s,
                                  tiles_.log_sum_exp + lane, tiles_.delta + lane);
    drop(shape_, head_, first, block.begin + lane, count, lanes, p);
    ops_.products.narrow_pairs(count, lanes, d_s, tiles_.d_s_pairs.at(0, lane));
    products.multiply_transposed(std::min(lanes, block.rows() - lane), shape_.width, (count + 1) / 2,
                                 tiles_.d_s_pairs.at(0, lane), tiles_.key_pairs.at(keys.begin / 2, 0),
                                 tiles_.dq.at(lane, 0), true);
  }

  /// dk and dv of `count` keys, from row `at` of the task's sums on, from the queries of the lanes.
  void key_side(const Operands& x, std::int64_t at, std::int64_t key, std::int64_t count,
                KeyRange lanes) const {
    const std::int64_t pairs = (lanes.end - lanes.begin + 1) / 2, from = lanes.begin / 2;
    if (pairs <= 0) return;
    const PairProducts<float>& products = ops_.products.wide;
    products.multiply(count, shape_.width, pairs, as_pairs(tiles_.p_rows).at(key, from),
                      tiles_.gradient_pairs.at(from, 0), x.dv.at(at, 0), true);
    products.multiply(count, shape_.width, pairs, as_pairs(tiles_.d_s_rows).at(key, from),
                      tiles_.query_pairs.at(from, 0), x.dk.at(at, 0), true);
  }

  const AttentionShape& shape_;
  const HeadContext& head_;
  const PairOps& ops_;
  const Tiles& tiles_;
  float scale_;
};

struct PairForm {
  using Stored = bf16;
  using Ops = PairOps;
  using Tiles = cpu::Tiles;
  using Head = HeadGradient;
};

}  // namespace

std::int64_t attention_pairs_backward_scratch(const AttentionShape& shape) {
  return BackwardCall<PairForm>::scratch(shape);
}

void attention_pairs_backward(const AttentionShape& shape, const AttentionPass& pass, const Target& dq,
                              const Target& dk, const Target& dv, const Tensor& scratch) {
  BackwardCall<PairForm>(shape, pass, dq, dk, dv, scratch).run();
}

}  // namespace dew::kernels::cpu
