#include "kernels/cpu/simd/leaves.h"

namespace dew::kernels::cpu::DEW_ISA {

namespace {

template <class T>
constexpr SimdOps<T> kOps{
    .add = add<T>,
    .exp = exp<T>,
    .scale = scale<T>,
    .lerp = lerp<T>,
    .swiglu_forward = swiglu_forward<T>,
    .swiglu_backward = swiglu_backward<T>,
    .sum_in_order = sum_in_order<T>,
    .sum_of_squares = sum_of_squares<T>,
    .rms_forward = rms_forward<T>,
    .rms_backward = rms_backward<T>,
    .rms_weight_rows = rms_weight_rows<T>,
    .layer_norm_forward = layer_norm_forward<T>,
    .layer_norm_backward = layer_norm_backward<T>,
    .layer_norm_weight_rows = layer_norm_weight_rows<T>,
    .sum_rows = sum_rows<T>,
    .gelu_forward = gelu_forward<T>,
    .gelu_backward = gelu_backward<T>,
    .dropout_line = dropout_line<T>,
    .rope_heads = rope_heads<T>,
    .log_sum_exp_row = log_sum_exp_row<T>,
    .exp_row = exp_row<T>,
    .adamw = adamw<T>,
    .fill_normal = fill_normal<T>,
};

}  // namespace

extern const SimdTable kTable;
constexpr SimdTable kTable{.f32 = kOps<float>, .f64 = kOps<double>, .add_widened = add_widened};

}  // namespace dew::kernels::cpu::DEW_ISA
