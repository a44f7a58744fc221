// An element of c is a sum over blocks of the inner dimension, added in order; a block's sum runs in order
// with one rounding a step. The blocks follow from K alone, so it does not matter how rows and columns are
// cut, between threads or within one. The cuts: a block of b lies in the second cache and a panel of it is
// read once for every few rows of a block of a; both are copied, so that the inner loops read what is
// contiguous (K. Goto and R. van de Geijn, "Anatomy of high-performance matrix multiplication", 2008).
#include "kernels/cpu/gemm.h"

#include <algorithm>

#include "kernels/cpu/gemm_bf16.h"
#include "kernels/cpu/gemm_grid.h"
#include "kernels/cpu/simd/matrix_table.h"

namespace dew::kernels::cpu {
namespace {

/// Measured on shapes of decoders: longer inner blocks leave less to load and store, shorter ones stay in the
/// cache.
constexpr std::int64_t kMostInner = 512, kBlockRows = 192, kBlockColumns = 1024;
std::int64_t inner_block(std::int64_t k) {
  return ceil_div(k, ceil_div(k, kMostInner));
}

/// Copies rows of a far matrix, asking for later rows while it moves one.
template <class T>
void copy_rows(std::int64_t rows, std::int64_t columns, Matrix<const T> from, Matrix<T> to) {
  constexpr std::int64_t kLine = 64 / sizeof(T), kAhead = 2048;
  const std::int64_t ahead = kAhead / columns + 1;
  for (std::int64_t i = 0; i < rows; ++i) {
    if (i + ahead < rows)
      for (std::int64_t j = 0; j < columns; j += kLine) __builtin_prefetch(from.at(i + ahead, j).first);
    std::copy_n(from.at(i, 0).first, columns, to.at(i, 0).first);
  }
}

/// One product, and the blocks of it that a thread works on.
template <class T>
struct Product {
  const GemmShape& s;
  Matrix<const T> a, b;
  Matrix<T> c;
  const MatrixOps<T>& ops;
  std::int64_t panel;  ///< columns of a panel of b
  std::int64_t inner;  ///< of a block

  Product(const GemmShape& shape, const T* left, const T* right, T* result)
      : s(shape),
        a{left, shape.trans_a ? shape.m : shape.k},
        b{right, shape.trans_b ? shape.k : shape.n},
        c{result, shape.n},
        ops(matrix_ops<T>()),
        panel(kPanelVectors * ops.lanes),
        inner(inner_block(shape.k)) {}

  std::int64_t panels() const { return ceil_div(s.n, panel); }
  std::int64_t scratch_of_a() const { return inner * std::min(kBlockRows, s.m); }
  std::int64_t scratch_of_b() const { return inner * std::min(kBlockColumns, panels() * panel); }
  /// Of one thread, in whole cache lines.
  std::int64_t scratch() const { return ceil_div(scratch_of_a() + scratch_of_b(), 16) * 16; }

  /// b's columns [first, ...) as panels of [terms, panel], one after the other.
  void copy_b(Span columns, Span terms, T* to) const {
    for (std::int64_t j = columns.begin; j < columns.end; j += panel, to += inner * panel) {
      const std::int64_t width = std::min(panel, columns.end - j);
      if (s.trans_b)
        ops.transpose(width, terms.size(), T{1}, b.at(j, terms.begin), {to, panel});
      else
        copy_rows(terms.size(), width, b.at(terms.begin, j), Matrix<T>{to, panel});
    }
  }

  /// a's rows as they are multiplied: [rows, terms], or [terms, rows] of a transposed a.
  Matrix<const T> rows_of_a(Span rows, Span terms, T* to) const {
    if (s.trans_a) {
      copy_rows(terms.size(), rows.size(), a.at(terms.begin, rows.begin), Matrix<T>{to, rows.size()});
      return {to, rows.size()};
    }
    if (terms.size() == s.k) return a.at(rows.begin, 0);  // contiguous already
    copy_rows(rows.size(), terms.size(), a.at(rows.begin, terms.begin), Matrix<T>{to, terms.size()});
    return {to, terms.size()};
  }

  /// Adds the terms to c, or makes c of the first ones.
  void add_terms(Span rows, Span columns, Span terms, T* copy_of_a, const T* copy_of_b) const {
    const bool add = s.accumulate || terms.begin > 0;
    for (std::int64_t i = rows.begin; i < rows.end; i += kBlockRows) {
      const std::int64_t count = std::min(kBlockRows, rows.end - i);
      const Matrix<const T> left = rows_of_a({i, i + count}, terms, copy_of_a);
      const auto multiply = s.trans_a ? ops.multiply_transposed : ops.multiply;
      const T* right = copy_of_b;
      for (std::int64_t j = columns.begin; j < columns.end; j += panel, right += inner * panel)
        multiply(count, std::min(panel, columns.end - j), terms.size(), left, {right, panel}, c.at(i, j),
                 add);
    }
  }

  void run(Span rows, Span columns, T* scratch_begin) const {
    if (rows.size() == 0) return;
    T* copy_of_b = scratch_begin;
    T* copy_of_a = scratch_begin + scratch_of_b();
    for (std::int64_t j = columns.begin; j < columns.end; j += kBlockColumns)
      for (std::int64_t p = 0; p < s.k; p += inner) {
        const Span block{j, std::min(j + kBlockColumns, columns.end)}, terms{p, std::min(p + inner, s.k)};
        copy_b(block, terms, copy_of_b);
        add_terms(rows, block, terms, copy_of_a, copy_of_b);
      }
  }
};

}  // namespace

std::int64_t gemm_scratch(const GemmShape& shape, DType dtype) {
  if (shape.m == 0 || shape.n == 0 || shape.k == 0) return 0;
  if (dtype == DType::kBf16) return gemm_bf16_scratch(shape);
  return visit_float(dtype, [&](auto zero) {
    using T = decltype(zero);
    return gemm_threads(shape) * Product<T>(shape, nullptr, nullptr, nullptr).scratch();
  });
}

void gemm(const GemmShape& shape, const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& scratch) {
  if (shape.m == 0 || shape.n == 0) return;
  if (a.dtype() == DType::kBf16) {
    gemm_bf16(shape, a, b, c, scratch);
    return;
  }
  visit_float(a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if (shape.k == 0) {
      if (!shape.accumulate) std::fill_n(c.data<T>(), c.numel(), T{0});
      return;
    }
    const Product<T> product(shape, a.data<T>(), b.data<T>(), c.data<T>());
    T* first = scratch.data<T>();
    for_tasks(shape, product.panel, [&](Span rows, Span columns, int thread) {
      product.run(rows, columns, first + thread * product.scratch());
    });
  });
}

}  // namespace dew::kernels::cpu
