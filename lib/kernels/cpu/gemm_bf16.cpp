// As gemm.cpp, with pairs of bf16 along the inner dimension. A result in bf16 is rounded once: its inner
// dimension is taken whole, or summed in an f32 tile of the task where it is too long for that.
#include "kernels/cpu/gemm_bf16.h"

#include <cstring>

#include "kernels/cpu/gemm_grid.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd/pair_table.h"

namespace dew::kernels::cpu {
namespace {

/// Pairs of an inner block where c is f32, and the most that a bf16 result takes at once.
constexpr std::int64_t kInnerPairs = 512, kWholePairs = 2048;
/// Pairs of a block of b and of a. Measured on shapes of decoders: b may come from the third cache, a panel
/// at a time, and the wider its block the less often a is copied; a stays in the second.
constexpr std::int64_t kBlockOfB = 1 << 20, kBlockOfA = 1 << 17;
/// Columns of a block, and of one whose f32 tile is kept for all rows of a task.
constexpr std::int64_t kMostRows = 192, kMostColumns = 4096, kMostTileColumns = 1024;
constexpr std::int64_t kPanel = kPanelVectors * 16;

std::int64_t whole_panels(std::int64_t columns) {
  return ceil_div(columns, kPanel) * kPanel;
}

class PairProduct {
 public:
  PairProduct(const GemmShape& shape, const Tensor& a, const Tensor& b, const Tensor& c)
      : PairProduct(shape) {
    a_ = {a.data<bf16>(), s_.trans_a ? s_.m : s_.k};
    b_ = {b.data<bf16>(), s_.trans_b ? s_.k : s_.n};
    if (s_.wide)
      wide_ = {c.data<float>(), s_.n};
    else
      narrow_ = {c.data<bf16>(), s_.n};
  }
  explicit PairProduct(const GemmShape& shape)
      : s_(shape),
        pairs_(ceil_div(shape.k, 2)),
        tiled_(!shape.wide && pairs_ > kWholePairs),
        inner_(shape.wide || tiled_ ? ceil_div(pairs_, ceil_div(pairs_, kInnerPairs)) : pairs_),
        rows_(
            std::clamp<std::int64_t>(kBlockOfA / std::max<std::int64_t>(inner_, 1) / 12 * 12, 12, kMostRows)),
        columns_(std::clamp<std::int64_t>(kBlockOfB / std::max<std::int64_t>(inner_, 1) / kPanel * kPanel,
                                          kPanel, tiled_ ? kMostTileColumns : kMostColumns)) {}

  /// Words of one thread, in whole cache lines.
  std::int64_t scratch() const {
    const Grid grid = grid_of(s_, gemm_threads(s_), ceil_div(s_.n, kPanel));
    const std::int64_t rows = ceil_div(s_.m, grid.down);
    const std::int64_t tile = tiled_ ? rows * std::min(columns_, whole_panels(s_.n)) : 0;
    return ceil_div(size_of_a() + size_of_b() + tile, 16) * 16;
  }

  void run(Span rows, Span columns, float* scratch_begin) const {
    if (rows.size() == 0) return;
    Pair* copy_of_b = reinterpret_cast<Pair*>(scratch_begin);
    Pair* copy_of_a = copy_of_b + size_of_b();
    float* tile = scratch_begin + size_of_b() + size_of_a();
    for (std::int64_t j = columns.begin; j < columns.end; j += columns_) {
      const Span block{j, std::min(j + columns_, columns.end)};
      for (std::int64_t p = 0; p < pairs_; p += inner_) {
        const Span terms{p, std::min(p + inner_, pairs_)};
        copy_b(block, terms, copy_of_b);
        for (std::int64_t i = rows.begin; i < rows.end; i += rows_) {
          const Span part{i, std::min(i + rows_, rows.end)};
          const Matrix<const Pair> left = pairs_of_a(part, terms, copy_of_a);
          if (s_.wide)
            multiply(part, block, terms, left, copy_of_b, wide_.at(i, j), s_.accumulate || p > 0);
          else if (tiled_)
            multiply(part, block, terms, left, copy_of_b,
                     Matrix<float>{tile + (i - rows.begin) * block.size(), block.size()}, p > 0);
          else
            multiply(part, block, terms, left, copy_of_b, narrow_.at(i, j), s_.accumulate);
        }
      }
      if (tiled_) round_tile(rows, block, tile);
    }
  }

 private:
  /// Whether rows of a are read where they lie, which they do as pairs, contiguous and whole.
  bool reads_a() const { return !s_.trans_a && inner_ == pairs_ && s_.k % 2 == 0; }
  std::int64_t size_of_a() const { return reads_a() ? 0 : inner_ * std::min(rows_, s_.m); }
  std::int64_t size_of_b() const { return inner_ * std::min(columns_, whole_panels(s_.n)); }
  /// Elements of the inner dimension in these pairs.
  std::int64_t elements(Span terms) const { return std::min(2 * terms.end, s_.k) - 2 * terms.begin; }

  void copy_b(Span columns, Span terms, Pair* to) const {
    for (std::int64_t j = columns.begin; j < columns.end; j += kPanel, to += inner_ * kPanel) {
      const std::int64_t width = std::min(kPanel, columns.end - j);
      if (s_.trans_b)
        packing_.transpose(width, elements(terms), b_.at(j, 2 * terms.begin), {to, kPanel});
      else
        packing_.interleave(elements(terms), width, b_.at(2 * terms.begin, j), {to, kPanel});
    }
  }

  Matrix<const Pair> pairs_of_a(Span rows, Span terms, Pair* to) const {
    if (reads_a()) return {reinterpret_cast<const Pair*>(a_.at(rows.begin, 0).first), pairs_};
    const std::int64_t count = elements(terms);
    if (s_.trans_a) {
      packing_.interleave(count, rows.size(), a_.at(2 * terms.begin, rows.begin), {to, rows.size()});
      return {to, rows.size()};
    }
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
      Pair* row = to + (i - rows.begin) * terms.size();
      if (count % 2 != 0) row[terms.size() - 1] = 0;
      std::memcpy(row, a_.at(i, 2 * terms.begin).first, static_cast<std::size_t>(count) * sizeof(bf16));
    }
    return {to, terms.size()};
  }

  template <class C>
  void multiply(Span rows, Span columns, Span terms, Matrix<const Pair> left, const Pair* right, Matrix<C> c,
                bool accumulate) const {
    const PairProducts<C>& products = products_of(c);
    const auto product = s_.trans_a ? products.multiply_transposed : products.multiply;
    for (std::int64_t j = columns.begin; j < columns.end; j += kPanel, right += inner_ * kPanel)
      product(rows.size(), std::min(kPanel, columns.end - j), terms.size(), left, {right, kPanel},
              c.at(0, j - columns.begin), accumulate);
  }
  const PairProducts<float>& products_of(Matrix<float>) const { return pair_table().wide; }
  const PairProducts<bf16>& products_of(Matrix<bf16>) const { return pair_table().narrow; }

  void round_tile(Span rows, Span columns, float* tile) const {
    const auto& table = simd_table();
    for (std::int64_t i = rows.begin; i < rows.end; ++i, tile += columns.size()) {
      bf16* c = narrow_.at(i, columns.begin).first;
      if (s_.accumulate) table.bf16_to_f32.add(c, tile, columns.size());
      table.f32_to_bf16(tile, c, columns.size());
    }
  }

  const GemmShape& s_;
  const PairPacking& packing_ = pair_packing(best_isa());
  std::int64_t pairs_;
  bool tiled_;
  std::int64_t inner_, rows_, columns_;  ///< of a block
  Matrix<const bf16> a_, b_;
  Matrix<bf16> narrow_;
  Matrix<float> wide_;
};

GemmShape real_shape(GemmShape shape) {
  // A result that is rounded is added to after its sum is whole.
  if (!shape.wide) shape.accumulate = false;
  shape.wide = false;
  return shape;
}

void cast_all(const bf16* from, float* to, std::int64_t n) {
  parallel_flat(
      n, [=](std::int64_t i, std::int64_t end) { simd_table().bf16_to_f32.cast(from + i, to + i, end - i); });
}

void gemm_widened(const GemmShape& shape, const Tensor& a, const Tensor& b, const Tensor& c,
                  const Tensor& scratch) {
  std::int64_t used = 0;
  const auto take = [&](const Shape& of) {
    used += of.numel();
    return scratch.range(used - of.numel(), used).reshape(of);
  };
  const Tensor left = take(a.shape()), right = take(b.shape()), sum = shape.wide ? c : take(c.shape());
  cast_all(a.data<bf16>(), left.data<float>(), a.numel());
  cast_all(b.data<bf16>(), right.data<float>(), b.numel());
  gemm(real_shape(shape), left, right, sum, scratch.range(used, scratch.numel()));
  if (shape.wide) return;
  float* x = sum.data<float>();
  bf16* y = c.data<bf16>();
  parallel_flat(c.numel(), [&](std::int64_t i, std::int64_t end) {
    if (shape.accumulate) simd_table().bf16_to_f32.add(y + i, x + i, end - i);
    simd_table().f32_to_bf16(x + i, y + i, end - i);
  });
}

}  // namespace

Bf16Products bf16_products() {
  static const Bf16Products kProducts = has_pair_products() ? Bf16Products::kNative : Bf16Products::kWidened;
  return kProducts;
}

std::int64_t gemm_bf16_scratch(const GemmShape& shape, Bf16Products products) {
  if (shape.k == 0) return 0;
  if (products == Bf16Products::kNative) return gemm_threads(shape) * PairProduct(shape).scratch();
  const std::int64_t sum = shape.wide ? 0 : shape.m * shape.n;
  return shape.m * shape.k + shape.k * shape.n + sum + gemm_scratch(real_shape(shape), DType::kF32);
}

void gemm_bf16(const GemmShape& shape, const Tensor& a, const Tensor& b, const Tensor& c,
               const Tensor& scratch, Bf16Products products) {
  if (shape.k == 0) {
    if (!shape.accumulate) std::memset(c.raw(), 0, c.bytes());
    return;
  }
  if (products == Bf16Products::kWidened) {
    gemm_widened(shape, a, b, c, scratch);
    return;
  }
  const PairProduct product(shape, a, b, c);
  float* first = scratch.data<float>();
  for_tasks(shape, kPanel, [&](Span rows, Span columns, int thread) {
    product.run(rows, columns, first + thread * product.scratch());
  });
}

}  // namespace dew::kernels::cpu
