// CPU loops of kernels/heads.h: positions in parallel.
#pragma once

#include "kernels/heads.h"

namespace dew::kernels::cpu {

void select_heads(const Tensor& x, std::span<const std::int64_t> heads, const Tensor& y);
void select_heads_backward(const Tensor& dy, std::span<const std::int64_t> heads, const Target& dx);

}  // namespace dew::kernels::cpu
