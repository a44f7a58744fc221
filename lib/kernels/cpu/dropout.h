// CPU loops of kernels/dropout.h: tokens in parallel.
#pragma once

#include "kernels/cpu/simd/table.h"
#include "kernels/dropout.h"

namespace dew::kernels::cpu {

/// What the leaf loops draw from, for one row.
DropoutDraw draw_of(const Dropout& dropout, std::int64_t row);

void dropout(const Dropout& draw, const TokenPlaces& places, const Tensor& x, const Target& y);

}  // namespace dew::kernels::cpu
