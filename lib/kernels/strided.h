// Boxes of elements moved between two layouts: packing for exchanges, and partial attention results put
// together.
#pragma once

#include <array>
#include <cstdint>

#include "tensor/tensor.h"

namespace dew::kernels {

/// Where the elements of a box lie in a tensor: element (i, j, k, l) at offset + i s0 + j s1 + k s2 + l s3.
/// Strides in elements; a source stride of 0 repeats.
struct StridedView {
  Tensor tensor;
  std::int64_t offset = 0;
  std::array<std::int64_t, 4> strides{0, 0, 0, 1};
};

/// to = from, or to += from, over a box of `extents` elements. Both of one dtype, f32 or f64; the innermost
/// strides are 1; no two elements of `to` are one. Tensors must not overlap.
void copy_strided(Stream& stream, const std::array<std::int64_t, 4>& extents, const StridedView& from,
                  const StridedView& to, bool accumulate);

/// Two softmax attentions of the same queries over different keys become the one over both: o, log_sum_exp
/// absorb o_part, log_sum_exp_part (arXiv:2205.14135, eq. of section 3). o [B, L, H, K]; log_sum_exp [B, H,
/// L]; a query that saw no key has 0 and -infinity. B samples, L queries, H heads, K head width.
void merge_attention(Stream& stream, const Tensor& o_part, const Tensor& log_sum_exp_part, const Tensor& o,
                     const Tensor& log_sum_exp);

}  // namespace dew::kernels
