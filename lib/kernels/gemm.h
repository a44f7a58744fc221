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

/// Whether this processor multiplies bf16 itself; else gemm widens bf16 to f32 first.
bool multiplies_bf16();

/// c = op(a) op(b), or c += op(a) op(b). op(a) [M, K], op(b) [K, N], c [M, N]; leading dims of a, b and c are
/// folded into the first one. All f32, all f64, or of bf16 with c in bf16 or f32;
/// bf16 factors are summed in f32 and rounded once, at the end. The inner dimension is never split over
/// threads: the bits of an element depend on its row of op(a), its column of op(b) and K alone. Enqueued on
/// the stream; lets communication progress first.
void gemm(Stream& stream, const Tensor& a, Transpose trans_a, const Tensor& b, Transpose trans_b,
          const Target& c);

}  // namespace dew::kernels
