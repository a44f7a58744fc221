// Matrix products of bf16 on the cores of one rank: summed in f32, rounded once.
#pragma once

#include "kernels/cpu/gemm.h"

namespace dew::kernels::cpu {

enum class Bf16Products : std::uint8_t {
  kNative,   ///< by the processor's own instruction (AVX-512 BF16)
  kWidened,  ///< factors become f32 first
};

/// What this processor can.
Bf16Products bf16_products();

/// f32 elements of scratch.
std::int64_t gemm_bf16_scratch(const GemmShape& shape, Bf16Products products = bf16_products());

/// a, b bf16; c bf16, or f32 where the shape is `wide`.
void gemm_bf16(const GemmShape& shape, const Tensor& a, const Tensor& b, const Tensor& c,
               const Tensor& scratch, Bf16Products products = bf16_products());

}  // namespace dew::kernels::cpu
