// CPU loops of kernels/norm.h: tokens in parallel.
#pragma once

#include "kernels/norm.h"

namespace dew::kernels::cpu {

/// Tokens whose part of d_weight is summed into one row of `partial`.
inline constexpr std::int64_t kNormChunk = 64;

void rms_norm_forward(const Tensor& x, const Tensor& weight, double eps, const Tensor& y,
                      const Tensor& inverse_rms);

/// `partial` [ceil(T / kNormChunk), D] f64 is scratch: the chunks' parts of d_weight, added in their order.
void rms_norm_backward(const Tensor& x, const Tensor& weight, const Tensor& inverse_rms, const Tensor& dy,
                       const Target& dx, const Target& d_weight, const Tensor& partial);

}  // namespace dew::kernels::cpu
