#include "kernels/cpu/attention_pairs.h"

#include <omp.h>

#include <cmath>
#include <limits>

#include "kernels/cpu/attention_pair_tiles.h"

namespace dew::kernels::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// One thread's tiles.
struct Tiles {
  Matrix<Pair> queries;           ///< [K / 2, block]
  Matrix<float> scores;           ///< [tile, block]
  Matrix<Pair> p;                 ///< [tile / 2, block]: probabilities, in pairs of keys
  Matrix<Pair> values;            ///< [tile / 2, K], in pairs of keys
  Matrix<float> sums;             ///< [block, K]: o before its division
  float *largest, *sum, *factor;  ///< [block]

  Tiles(Scratch<float> scratch, std::int64_t k)
      : queries(take_pairs(scratch, k / 2, kBlockQueries)),
        scores(scratch.take(kTileKeys, kBlockQueries)),
        p(take_pairs(scratch, kTileKeys / 2, kBlockQueries)),
        values(take_pairs(scratch, kTileKeys / 2, k)),
        sums(scratch.take(kBlockQueries, k)),
        largest(scratch.take(kBlockQueries)),
        sum(scratch.take(kBlockQueries)),
        factor(scratch.take(kBlockQueries)) {}

  static std::int64_t elements(std::int64_t k) {
    const auto rounded = [](std::int64_t n) { return Scratch<float>::rounded(n); };
    return rounded(k / 2 * kBlockQueries) + kTileKeys * kBlockQueries + kTileKeys / 2 * kBlockQueries +
           rounded(kTileKeys / 2 * k) + rounded(kBlockQueries * k) + 3 * rounded(kBlockQueries);
  }
};

struct Head {
  Matrix<const bf16> q, k, v;
  Matrix<bf16> o;
  float* log_sum_exp;
};

class ForwardBlock {
 public:
  ForwardBlock(const AttentionShape& shape, const HeadContext& context, const PairOps& ops,
               const Tiles& tiles, const QueryBlock& block)
      : shape_(shape),
        context_(context),
        ops_(ops),
        tiles_(tiles),
        block_(block),
        scale_(static_cast<float>(1 / std::sqrt(static_cast<double>(shape.width)))) {}

  void run(const Head& x) const {
    pack_lanes(ops_, x.q.at(block_.begin, 0), block_, shape_.width, tiles_.queries);
    std::fill_n(tiles_.largest, block_.width, -kInfinity);
    std::fill_n(tiles_.sum, block_.width, 0.0f);
    std::fill_n(tiles_.sums.first, block_.rows() * shape_.width, 0.0f);
    for_tiles(shape_, context_, block_, {0, shape_.keys},
              [&](KeyRange keys, const TileMask& mask) { add_tile(x, keys, mask); });
    finish(x);
  }

 private:
  void add_tile(const Head& x, KeyRange keys, const TileMask& mask) const {
    const std::int64_t count = keys.end - keys.begin;
    ops_.packing.interleave(count, shape_.width, x.v.at(keys.begin, 0), tiles_.values);
    const Matrix<const Pair> rows = as_pairs(x.k.at(keys.begin, 0));
    const std::int64_t step = mask.partial ? ops_.lanes : block_.width;
    for (std::int64_t lane = 0; lane < block_.width; lane += step) {
      const KeyRange seen = even(keys_of_lanes(mask, count, lane, step), count);
      if (seen.begin < seen.end) add_keys(rows, keys.begin, seen, moved(mask, seen.begin, lane), lane, step);
    }
  }

  void add_keys(Matrix<const Pair> k, std::int64_t tile_begin, KeyRange seen, const TileMask& mask,
                std::int64_t lane, std::int64_t lanes) const {
    const std::int64_t count = seen.end - seen.begin, rows = std::min(lanes, block_.rows() - lane);
    const Matrix<float> scores = tiles_.scores.at(0, lane), sums = tiles_.sums.at(lane, 0);
    ops_.products.wide.multiply(count, lanes, shape_.width / 2, k.at(seen.begin, 0),
                                tiles_.queries.at(0, lane), scores, false);
    ops_.softmax.softmax_step(count, lanes, mask, scale_, scores, tiles_.largest + lane, tiles_.sum + lane,
                              tiles_.factor + lane);
    drop(shape_, context_, tile_begin + seen.begin, block_.begin + lane, count, lanes, scores);
    ops_.products.narrow_pairs(count, lanes, scores, tiles_.p.at(0, lane));
    ops_.softmax.scale_rows(rows, shape_.width, tiles_.factor + lane, sums, sums, false);
    ops_.products.wide.multiply_transposed(rows, shape_.width, (count + 1) / 2, tiles_.p.at(0, lane),
                                           tiles_.values.at(seen.begin / 2, 0), sums, true);
  }

  void finish(const Head& x) const {
    for (std::int64_t i = 0; i < block_.rows(); ++i) {
      const bool blind = tiles_.largest[i] == -kInfinity && tiles_.sum[i] == 0;
      x.log_sum_exp[block_.begin + i] = blind ? -kInfinity : tiles_.largest[i] + std::log(tiles_.sum[i]);
      tiles_.factor[i] = blind ? 0.0f : 1 / tiles_.sum[i];
    }
    ops_.softmax.scale_rows(block_.rows(), shape_.width, tiles_.factor, tiles_.sums, tiles_.sums, false);
    for (std::int64_t i = 0; i < block_.rows(); ++i)
      simd_table().f32_to_bf16(tiles_.sums.at(i, 0).first, x.o.at(block_.begin + i, 0).first, shape_.width);
  }

  const AttentionShape& shape_;
  const HeadContext& context_;
  const PairOps& ops_;
  const Tiles& tiles_;
  const QueryBlock& block_;
  float scale_;
};

}  // namespace

bool multiplies_pairs(const AttentionShape& shape, DType dtype) {
  return dtype == DType::kBf16 && shape.width % 2 == 0 && has_pair_products();
}

std::int64_t attention_pairs_forward_scratch(const AttentionShape& shape) {
  return attention_threads() * Tiles::elements(shape.width);
}

void attention_pairs_forward(const AttentionShape& shape, const Tensor& q, const Tensor& k, const Tensor& v,
                             const Tensor& o, const Tensor& log_sum_exp, const Tensor& scratch) {
  const PairOps ops;
  const bf16 *q0 = q.data<bf16>(), *k0 = k.data<bf16>(), *v0 = v.data<bf16>();
  bf16* o0 = o.data<bf16>();
  float *lse0 = log_sum_exp.data<float>(), *scratch0 = scratch.data<float>();
  const std::int64_t blocks = (shape.queries + kBlockQueries - 1) / kBlockQueries;
  const std::int64_t tasks = shape.samples * shape.heads * blocks, group = shape.heads / shape.kv_heads;
#pragma omp parallel num_threads(static_cast <int>(attention_threads()))
  {
    const Tiles tiles(Scratch<float>(scratch0 + omp_get_thread_num() * Tiles::elements(shape.width)),
                      shape.width);
#pragma omp for schedule(dynamic)
    for (std::int64_t task = 0; task < tasks; ++task) {
      const std::int64_t b = task / blocks / shape.heads, h = task / blocks % shape.heads;
      // The last queries see the most keys: they go first, so that no thread is left alone with them.
      const QueryBlock block(shape, blocks - 1 - task % blocks, ops.lanes);
      const HeadContext context(shape, b, h);
      ForwardBlock(shape, context, ops, tiles, block)
          .run({head_of(q0, b, shape.queries, h, shape.heads, shape.width),
                head_of(k0, b, shape.keys, h / group, shape.kv_heads, shape.width),
                head_of(v0, b, shape.keys, h / group, shape.kv_heads, shape.width),
                head_of(o0, b, shape.queries, h, shape.heads, shape.width),
                lse0 + (b * shape.heads + h) * shape.queries});
    }
  }
}

}  // namespace dew::kernels::cpu
