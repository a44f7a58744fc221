#include "kernels/cpu/simd/matrix_leaves.h"
#include "kernels/cpu/simd/vec.h"

namespace dew::kernels::cpu::DEW_ISA {
namespace {

template <class T>
constexpr MatrixOps<T> kOps{
    .lanes = Vec<T>::kLanes,
    .multiply = multiply<T>,
    .multiply_transposed = multiply_transposed<T>,
    .transpose = transpose<T>,
};

}  // namespace

extern const MatrixTable kMatrixTable;
constexpr MatrixTable kMatrixTable{.f32 = kOps<float>, .f64 = kOps<double>};

}  // namespace dew::kernels::cpu::DEW_ISA
