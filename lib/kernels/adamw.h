// AdamW (arXiv:1711.05101, algorithm 2, with bias correction as PyTorch documents it).
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace dew::kernels {

struct AdamWStep {
  double lr = 0;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;    ///< decoupled: w *= 1 - lr * weight_decay first
  double gradient_scale = 1;  ///< the gradient is multiplied by it (clipping)
  std::int64_t step = 1;      ///< counted from 1, for the bias correction
};

/// Updates w, m and v [N] from gradient [N]; all f32 or all f64. An element's result depends on that element
/// alone, not on its place. Enqueued on the stream.
void adamw(Stream& stream, const AdamWStep& step, const Tensor& gradient, const Tensor& w, const Tensor& m,
           const Tensor& v);

}  // namespace dew::kernels
