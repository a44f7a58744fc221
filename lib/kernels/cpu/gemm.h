// Matrix products on the cores of one rank.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace dew::kernels {

/// c = op(a) op(b): op(a) [M, K], op(b) [K, N], c [M, N], all row-major and contiguous.
struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;
  bool trans_a = false;  ///< a is stored [K, M]
  bool trans_b = false;  ///< b is stored [N, K]
  bool accumulate = false;
};

}  // namespace dew::kernels

namespace dew::kernels::cpu {

/// Rows and columns of c that one thread computes. They follow from the shape alone: were they cut by the
/// thread count, an edge could fall into another inner kernel and change the last bit.
struct GemmTile {
  std::int64_t rows = 0, columns = 0;
};
GemmTile gemm_tile(const GemmShape& shape);

void gemm(const GemmShape& shape, const Tensor& a, const Tensor& b, const Tensor& c);

}  // namespace dew::kernels::cpu
