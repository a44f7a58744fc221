#include "kernels/cpu/simd/leaves.h"

namespace dew::kernels::cpu::DEW_ISA {

namespace {

template <class T>
constexpr SimdOps<T> kOps{
    .add = add<T>,
    .blend = blend<T>,
    .swiglu_forward = swiglu_forward<T>,
    .swiglu_backward = swiglu_backward<T>,
    .sum_in_order = sum_in_order<T>,
    .rms_forward = rms_forward<T>,
    .rms_backward = rms_backward<T>,
    .layer_norm_forward = layer_norm_forward<T>,
    .layer_norm_backward = layer_norm_backward<T>,
    .gelu_forward = gelu_forward<T>,
    .gelu_backward = gelu_backward<T>,
    .dropout_line = dropout_line<T>,
    .rope_heads = rope_heads<T>,
};

template <class T>
constexpr RealOps<T> kRealOps{
    .exp = exp<T>,
    .scale = scale<T>,
    .lerp = lerp<T>,
    .sum_of_squares = sum_of_squares<T>,
    .log_sum_exp_row = log_sum_exp_row<T>,
    .exp_row = exp_row<T>,
    .adamw = adamw<T>,
    .fill_normal = fill_normal<T>,
};

template <class From, class To>
constexpr Conversions<From, To> kConversions{.add = add_widened<From, To>, .cast = cast<From, To>};

}  // namespace

extern const SimdTable kTable;
constexpr SimdTable kTable{.f32 = kOps<float>,
                           .f64 = kOps<double>,
                           .stored_bf16 = kOps<bf16>,
                           .real_f32 = kRealOps<float>,
                           .real_f64 = kRealOps<double>,
                           .f32_to_f64 = kConversions<float, double>,
                           .bf16_to_f32 = kConversions<bf16, float>,
                           .bf16_to_f64 = kConversions<bf16, double>,
                           .f32_to_bf16 = cast<float, bf16>,
                           .f64_to_bf16 = cast<double, bf16>};

}  // namespace dew::kernels::cpu::DEW_ISA
