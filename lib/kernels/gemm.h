// Matrix products.
#pragma once

#include "tensor/tensor.h"

namespace dew::kernels {

enum class Transpose : bool { kNo, kYes };

/// Where a result goes: overwritten, or added to what is there (the first writer overwrites, later ones
/// accumulate).
struct Target {
  Tensor into;
  bool accumulate = false;
};

/// c = op(a) op(b), or c += op(a) op(b). op(a) [M, K], op(b) [K, N], c [M, N]; leading dims of a, b and c are
/// folded into the first one. All f32 or all f64. The inner dimension is never split over threads: the bits
/// of an element depend on its row of op(a), its column of op(b) and K alone. Enqueued on the stream; lets
/// communication progress first.
void gemm(Stream& stream, const Tensor& a, Transpose trans_a, const Tensor& b, Transpose trans_b,
          const Target& c);

}  // namespace dew::kernels
