#include "kernels/cpu/gemm.h"

#include <cblas.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <limits>

#include "tensor/copy.h"

namespace dew::kernels::cpu {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// One tile of a product, by a library call that runs on the calling thread alone.
template <class T>
struct Tile {
  const T* a;
  const T* b;
  T* c;
  std::int64_t rows, columns;
};

bool multiply(const GemmShape& s, const Tile<float>& tile) {
  const std::int64_t lda = s.trans_a ? s.m : s.k, ldb = s.trans_b ? s.k : s.n;
  return dnnl_sgemm(s.trans_a ? 'T' : 'N', s.trans_b ? 'T' : 'N', tile.rows, tile.columns, s.k, 1.0f, tile.a,
                    lda, tile.b, ldb, s.accumulate ? 1.0f : 0.0f, tile.c, s.n) == dnnl_success;
}

bool multiply(const GemmShape& s, const Tile<double>& tile) {
  const auto integer = [](std::int64_t x) { return static_cast<blasint>(x); };
  const std::int64_t lda = s.trans_a ? s.m : s.k, ldb = s.trans_b ? s.k : s.n;
  cblas_dgemm(CblasRowMajor, s.trans_a ? CblasTrans : CblasNoTrans, s.trans_b ? CblasTrans : CblasNoTrans,
              integer(tile.rows), integer(tile.columns), integer(s.k), 1.0, tile.a, integer(lda), tile.b,
              integer(ldb), s.accumulate ? 1.0 : 0.0, tile.c, integer(s.n));
  return true;
}

template <class T>
void multiply_tiled(const GemmShape& s, const T* a, const T* b, T* c) {
  const GemmTile tile = gemm_tile(s);
  const std::int64_t across = ceil_div(s.n, tile.columns), tiles = ceil_div(s.m, tile.rows) * across;
  const int threads = static_cast<int>(std::min<std::int64_t>(tiles, omp_get_max_threads()));
  bool good = true;
#pragma omp parallel num_threads(threads) reduction(&& : good)
  {
    // A library asks for this number when it decides how many threads to start; it is this task's own copy.
    omp_set_num_threads(1);
#pragma omp for schedule(dynamic)
    for (std::int64_t t = 0; t < tiles; ++t) {
      const std::int64_t row = t / across * tile.rows, column = t % across * tile.columns;
      good = multiply(s, Tile<T>{.a = s.trans_a ? a + row : a + row * s.k,
                                 .b = s.trans_b ? b + column * s.k : b + column,
                                 .c = c + row * s.n + column,
                                 .rows = std::min(tile.rows, s.m - row),
                                 .columns = std::min(tile.columns, s.n - column)}) &&
             good;
    }
  }
  DEW_CHECK(good, s.m, s.n, s.k);
}

}  // namespace

GemmTile gemm_tile(const GemmShape& s) {
  return {std::max<std::int64_t>(ceil_div(s.m, 2), 64), s.n};
}

void gemm(const GemmShape& shape, const Tensor& a, const Tensor& b, const Tensor& c) {
  if (shape.m == 0 || shape.n == 0) return;
  if (shape.k == 0) {
    if (!shape.accumulate) std::fill_n(static_cast<char*>(c.raw()), c.bytes(), char{0});
    return;
  }
  constexpr std::int64_t kLargest = std::numeric_limits<blasint>::max();
  DEW_CHECK(shape.m <= kLargest && shape.n <= kLargest && shape.k <= kLargest, shape.m, shape.n, shape.k);
  visit_float(a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    multiply_tiled(shape, a.data<T>(), b.data<T>(), c.data<T>());
  });
}

}  // namespace dew::kernels::cpu
