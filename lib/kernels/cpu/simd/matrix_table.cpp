#include "kernels/cpu/simd/matrix_table.h"

#include "base/check.h"

namespace dew::kernels::cpu {

namespace avx2 {
extern const MatrixTable kMatrixTable;
}
namespace avx512 {
extern const MatrixTable kMatrixTable;
}

const MatrixTable& matrix_table(Isa isa) {
  return isa == Isa::kAvx512 ? avx512::kMatrixTable : avx2::kMatrixTable;
}

namespace {

const MatrixTable& best_table() {
  if (!supports(Isa::kAvx2)) throw Error("the kernels need a processor with AVX2 and FMA (x86-64-v3)");
  return matrix_table(supports(Isa::kAvx512) ? Isa::kAvx512 : Isa::kAvx2);
}

}  // namespace

template <>
const MatrixOps<float>& matrix_ops<float>() {
  return best_table().f32;
}
template <>
const MatrixOps<double>& matrix_ops<double>() {
  return best_table().f64;
}

}  // namespace dew::kernels::cpu
