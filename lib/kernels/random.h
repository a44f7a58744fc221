// Initial values as a pure function of (key, global element index).
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace dew::kernels {

/// x[i] = stddev * z(key, begin + i), z standard normal, in f64 before rounding to x's dtype. The value at a
/// global index is the same for every `begin` >= 0. Elements 2j and 2j + 1 come by Box-Muller from the
/// Philox4x32-10 block (w0, w1, w2, w3) of counter j: with the 52-bit fractions u = (2^32 w0 + w1) >> 12 and
/// v = (2^32 w2 + w3) >> 12 over 2^52, they are sqrt(-2 log(1 - u)) times cos(2 pi v) and sin(2 pi v). x [N]
/// f32 or f64.
void fill_normal(Stream& stream, std::uint64_t key, std::int64_t begin, double stddev, const Tensor& x);

}  // namespace dew::kernels
