// Matrix products.
#pragma once

#include "tensor/tensor.h"

namespace dew::kernels {

enum class Transpose : bool { kNo, kYes };

/// Where a result goes: overwritten, or added to what is there (the first writer overwrites, later ones accumulate).
struct Target {
  Tensor into;
  bool accumulate = false;
};

/// c = op(a) op(b), or c += op(a) op(b). op(a) [M, K], op(b) [K, N], c [M, N]; leading dims of a, b and c are folded
/// into the first one. All f32 (oneDNN) or all f64 (OpenBLAS). The inner dimension is never split over threads: the
/// bits do not depend on the thread count. Enqueued on the stream; lets communication progress first.
void gemm(Stream& stream, const Tensor& a, Transpose trans_a, const Tensor& b, Transpose trans_b, const Target& c);

}  // namespace dew::kernels
