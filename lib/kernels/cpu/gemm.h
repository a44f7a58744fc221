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
  bool wide = false;  ///< of bf16 factors: c is f32
};

}  // namespace dew::kernels

namespace dew::kernels::cpu {

/// Elements of scratch of one call, of the real type of `dtype`: for each thread a block of a and of b.
std::int64_t gemm_scratch(const GemmShape& shape, DType dtype);

void gemm(const GemmShape& shape, const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& scratch);

}  // namespace dew::kernels::cpu
