#include <omp.h>

#include <cmath>
#include <limits>

#include "kernels/cpu/attention_tiles.h"

namespace dew::kernels::cpu {
namespace {

/// Tasks that a call should have at least, and copies of dq and keys a copy for it at most.
constexpr std::int64_t kWantedTasks = 16, kMostParts = 4, kKeysOfPart = 512;

/// Parts into which the keys of one head are cut. A task owns the dk and dv of one part of one head, so it
/// sums them alone and in order; each part has its own dq, summed in order at the end. Follows from the shape
/// alone.
std::int64_t key_parts(const AttentionShape& shape) {
  const std::int64_t heads = std::max<std::int64_t>(shape.samples * shape.kv_heads, 1);
  const std::int64_t wanted = (kWantedTasks + heads - 1) / heads;
  return std::clamp<std::int64_t>(std::min(wanted, shape.keys / kKeysOfPart), 1, kMostParts);
}

KeyRange part_of_keys(const AttentionShape& shape, std::int64_t part) {
  const std::int64_t tiles = (shape.keys + kTileKeys - 1) / kTileKeys, parts = key_parts(shape);
  return {std::min(tiles * part / parts * kTileKeys, shape.keys),
          std::min(tiles * (part + 1) / parts * kTileKeys, shape.keys)};
}

/// One thread's tiles.
template <class T>
struct Tiles {
  Matrix<T> queries;              ///< [K, block], scaled by 1 / sqrt(K)
  Matrix<T> gradients;            ///< [K, block]: d_o
  Matrix<T> p, d_s;               ///< [tile, block]: probabilities, gradients of the scores
  Matrix<T> dq;                   ///< [block, K]
  T *log_sum_exp, *delta, *ones;  ///< [block]

  Tiles(Scratch<T> scratch, std::int64_t k)
      : queries(scratch.take(k, kBlockQueries)),
        gradients(scratch.take(k, kBlockQueries)),
        p(scratch.take(kTileKeys, kBlockQueries)),
        d_s(scratch.take(kTileKeys, kBlockQueries)),
        dq(scratch.take(kBlockQueries, k)),
        log_sum_exp(scratch.take(kBlockQueries)),
        delta(scratch.take(kBlockQueries)),
        ones(scratch.take(kBlockQueries)) {
    std::fill_n(ones, kBlockQueries, T{1});
  }

  static std::int64_t elements(std::int64_t k) {
    return 3 * Scratch<T>::rounded(k * kBlockQueries) + 2 * kTileKeys * kBlockQueries +
           3 * Scratch<T>::rounded(kBlockQueries);
  }
};

/// Heads of one task.
template <class T>
struct Operands {
  Matrix<const T> q, k, v, o, d_o;
  const T* log_sum_exp;
  Matrix<T> dq, dk, dv;
  bool add_dq;
};

template <class T>
class HeadGradient {
 public:
  HeadGradient(const AttentionShape& shape, const HeadContext& head, const Ops<T>& ops, const Tiles<T>& tiles)
      : shape_(shape),
        head_(head),
        ops_(ops),
        tiles_(tiles),
        scale_(static_cast<T>(1 / std::sqrt(static_cast<double>(shape.width)))) {}

  /// Adds one query head's part to dk and dv of `keys`, and writes or adds its dq.
  void run(const Operands<T>& x, KeyRange keys) const {
    const std::int64_t blocks = (shape_.queries + kBlockQueries - 1) / kBlockQueries;
    for (std::int64_t index = 0; index < blocks; ++index) {
      const QueryBlock block(shape_, index, ops_.matrix.lanes);
      prepare(x, block);
      for_tiles(shape_, head_, block, keys,
                [&](KeyRange tile, const TileMask& mask) { add_tile(x, block, tile, mask); });
      ops_.softmax.scale_rows(block.rows(), shape_.width, tiles_.ones, tiles_.dq, x.dq.at(block.begin, 0),
                              x.add_dq);
    }
  }

 private:
  void prepare(const Operands<T>& x, const QueryBlock& block) const {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    const std::int64_t rows = block.rows();
    ops_.matrix.transpose(rows, shape_.width, scale_, x.q.at(block.begin, 0), tiles_.queries);
    ops_.matrix.transpose(rows, shape_.width, T{1}, x.d_o.at(block.begin, 0), tiles_.gradients);
    ops_.softmax.dot_rows(rows, shape_.width, x.o.at(block.begin, 0), x.d_o.at(block.begin, 0), tiles_.delta);
    for (std::int64_t i = 0; i < block.width; ++i) {
      // A query that saw no key has -infinity: what comes of it is hidden in every tile.
      tiles_.log_sum_exp[i] = i < rows ? x.log_sum_exp[block.begin + i] : kInfinity;
      if (i >= rows) tiles_.delta[i] = 0;
    }
    std::fill_n(tiles_.dq.first, rows * shape_.width, T{0});
  }

  void add_tile(const Operands<T>& x, const QueryBlock& block, KeyRange tile, const TileMask& mask) const {
    const std::int64_t keys = tile.end - tile.begin;
    if (mask.partial) {
      std::fill_n(tiles_.p.first, keys * kBlockQueries, T{0});
      std::fill_n(tiles_.d_s.first, keys * kBlockQueries, T{0});
    }
    const std::int64_t lane_step = mask.partial ? ops_.matrix.lanes : block.width;
    for (std::int64_t lane = 0; lane < block.width; lane += lane_step) {
      const KeyRange seen = keys_of_lanes(mask, keys, lane, lane_step);
      if (seen.begin < seen.end) query_side(x, block, tile.begin, seen, mask, lane, lane_step);
    }
    const std::int64_t key_step = mask.partial ? ops_.matrix.lanes : keys;
    for (std::int64_t key = 0; key < keys; key += key_step) {
      const std::int64_t count = std::min(key_step, keys - key);
      const KeyRange lanes = lanes_of_keys(mask, block.width, ops_.matrix.lanes, key, count);
      key_side(x, block, tile.begin + key, key, count, {lanes.begin, std::min(lanes.end, block.rows())});
    }
  }

  /// p and d_s of the lanes [lane, lane + lanes), and their dq.
  void query_side(const Operands<T>& x, const QueryBlock& block, std::int64_t tile_begin, KeyRange keys,
                  const TileMask& mask, std::int64_t lane, std::int64_t lanes) const {
    const std::int64_t count = keys.end - keys.begin, first = tile_begin + keys.begin;
    const Matrix<T> p = tiles_.p.at(keys.begin, lane), d_s = tiles_.d_s.at(keys.begin, lane);
    ops_.matrix.multiply(count, lanes, shape_.width, x.k.at(first, 0), tiles_.queries.at(0, lane), p, false);
    ops_.matrix.multiply(count, lanes, shape_.width, x.v.at(first, 0), tiles_.gradients.at(0, lane), d_s,
                         false);
    drop(shape_, head_, first, block.begin + lane, count, lanes, d_s);
    ops_.softmax.softmax_gradient(count, lanes, moved(mask, keys.begin, lane), scale_, p, d_s,
                                  tiles_.log_sum_exp + lane, tiles_.delta + lane);
    drop(shape_, head_, first, block.begin + lane, count, lanes, p);
    ops_.matrix.multiply_transposed(std::min(lanes, block.rows() - lane), shape_.width, count, d_s,
                                    x.k.at(first, 0), tiles_.dq.at(lane, 0), true);
  }

  /// dk and dv of `count` keys, from the queries of the lanes.
  void key_side(const Operands<T>& x, const QueryBlock& block, std::int64_t first, std::int64_t key,
                std::int64_t count, KeyRange lanes) const {
    const std::int64_t queries = lanes.end - lanes.begin, from = block.begin + lanes.begin;
    if (queries <= 0) return;
    ops_.matrix.multiply(count, shape_.width, queries, tiles_.p.at(key, lanes.begin), x.d_o.at(from, 0),
                         x.dv.at(first, 0), true);
    ops_.matrix.multiply(count, shape_.width, queries, tiles_.d_s.at(key, lanes.begin), x.q.at(from, 0),
                         x.dk.at(first, 0), true);
  }

  const AttentionShape& shape_;
  const HeadContext& head_;
  const Ops<T>& ops_;
  const Tiles<T>& tiles_;
  T scale_;
};

template <class T>
void clear_rows(Matrix<T> rows, KeyRange range, std::int64_t width) {
  for (std::int64_t j = range.begin; j < range.end; ++j) std::fill_n(rows.at(j, 0).first, width, T{0});
}

/// One call: where everything lies.
template <class T>
struct Call {
  const AttentionShape& shape;
  const Ops<T>& ops;
  const T *q, *k, *v, *o, *log_sum_exp, *d_o;
  T *dq, *dk, *dv;  ///< dq of part 0; those of the others follow from one another
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
    if (!add_dk) clear_rows(keys_of(dk), keys, shape.width);
    if (!add_dv) clear_rows(keys_of(dv), keys, shape.width);
    for (std::int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
      const Operands<T> x{.q = queries_of(q, h),
                          .k = keys_of(k),
                          .v = keys_of(v),
                          .o = queries_of(o, h),
                          .d_o = queries_of(d_o, h),
                          .log_sum_exp = log_sum_exp + (sample * shape.heads + h) * shape.queries,
                          .dq = queries_of(dq + part * part_stride, h),
                          .dk = keys_of(dk),
                          .dv = keys_of(dv),
                          .add_dq = add_dq};
      HeadGradient<T>(shape, HeadContext(shape, sample, h), ops, tiles).run(x, keys);
    }
  }
};

/// dq (+)= the sum of its parts, in their order.
template <class T>
void add_parts(const T* parts, std::int64_t count, std::int64_t n, T* dq, bool accumulate) {
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; ++i) {
    T sum = parts[i];
    for (std::int64_t part = 1; part < count; ++part) sum += parts[part * n + i];
    dq[i] = accumulate ? dq[i] + sum : sum;
  }
}

std::int64_t part_elements(const AttentionShape& shape) {
  return key_parts(shape) == 1 ? 0 : shape.samples * shape.queries * shape.heads * shape.width;
}

}  // namespace

std::int64_t attention_backward_scratch(const AttentionShape& shape, DType dtype) {
  return visit_float(dtype, [&](auto zero) {
    return attention_threads() * Tiles<decltype(zero)>::elements(shape.width) +
           key_parts(shape) * part_elements(shape);
  });
}

void attention_backward(const AttentionShape& shape, const AttentionPass& pass, const Target& dq,
                        const Target& dk, const Target& dv, const Tensor& scratch) {
  visit_float(pass.q.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Ops<T> ops;
    const std::int64_t parts = key_parts(shape), tasks = shape.samples * shape.kv_heads * parts;
    const std::int64_t threads = attention_threads(), stride = part_elements(shape);
    T* tiles_begin = scratch.data<T>();
    T* dq_parts = tiles_begin + threads * Tiles<T>::elements(shape.width);
    const Call<T> call{.shape = shape,
                       .ops = ops,
                       .q = pass.q.data<T>(),
                       .k = pass.k.data<T>(),
                       .v = pass.v.data<T>(),
                       .o = pass.o.data<T>(),
                       .log_sum_exp = pass.log_sum_exp.data<T>(),
                       .d_o = pass.d_o.data<T>(),
                       .dq = parts > 1 ? dq_parts : dq.into.data<T>(),
                       .dk = dk.into.data<T>(),
                       .dv = dv.into.data<T>(),
                       .part_stride = stride,
                       .add_dq = parts == 1 && dq.accumulate,
                       .add_dk = dk.accumulate,
                       .add_dv = dv.accumulate};
#pragma omp parallel num_threads(static_cast <int>(threads))
    {
      const Tiles<T> tiles(Scratch<T>(tiles_begin + omp_get_thread_num() * Tiles<T>::elements(shape.width)),
                           shape.width);
#pragma omp for schedule(dynamic)
      for (std::int64_t task = 0; task < tasks; ++task)
        call.run(tiles, task / parts / shape.kv_heads, task / parts % shape.kv_heads, task % parts);
    }
    if (parts > 1) add_parts(dq_parts, parts, stride, dq.into.data<T>(), dq.accumulate);
  });
}

}  // namespace dew::kernels::cpu
