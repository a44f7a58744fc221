#include "kernels/cpu/simd/attention_leaves.h"

namespace dew::kernels::cpu::DEW_ISA {
namespace {

template <class T>
constexpr AttentionOps<T> kOps{
    .softmax_step = softmax_step<T>,
    .softmax_gradient = softmax_gradient<T>,
    .scale_rows = scale_rows<T>,
    .dot_rows = dot_rows<T>,
};

}  // namespace

extern const AttentionTable kAttentionTable;
constexpr AttentionTable kAttentionTable{.f32 = kOps<float>, .f64 = kOps<double>};

}  // namespace dew::kernels::cpu::DEW_ISA
