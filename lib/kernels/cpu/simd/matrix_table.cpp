#include "kernels/cpu/simd/matrix_table.h"

namespace dew::kernels::cpu {

namespace avx2 {
extern const MatrixTable kMatrixTable;
}
namespace avx512 {
extern const MatrixTable kMatrixTable;
}

const MatrixTable& matrix_table(Isa isa) {
  return isa == Isa::kAvx2 ? avx2::kMatrixTable : avx512::kMatrixTable;
}

template <>
const MatrixOps<float>& matrix_ops<float>() {
  return matrix_table(best_isa()).f32;
}
template <>
const MatrixOps<double>& matrix_ops<double>() {
  return matrix_table(best_isa()).f64;
}

}  // namespace dew::kernels::cpu
