#include "kernels/cpu/simd/table.h"

namespace dew::kernels::cpu {

namespace avx2 {
extern const SimdTable kTable;
}
namespace avx512 {
extern const SimdTable kTable;
}

namespace avx512_bf16 {
extern const SimdTable kTable;
}

const SimdTable& simd_table(Isa isa) {
  if (isa == Isa::kAvx2) return avx2::kTable;
  return isa == Isa::kAvx512 ? avx512::kTable : avx512_bf16::kTable;
}

const SimdTable& simd_table() {
  return simd_table(best_isa());
}

}  // namespace dew::kernels::cpu
