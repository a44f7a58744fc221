#include "kernels/cpu/simd/table.h"

#include "base/check.h"

namespace dew::kernels::cpu {

namespace avx2 {
extern const SimdTable kTable;
}
namespace avx512 {
extern const SimdTable kTable;
}

bool supports(Isa isa) {
  const bool avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  if (isa == Isa::kAvx2) return avx2;
  return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

const SimdTable& simd_table(Isa isa) {
  return isa == Isa::kAvx512 ? avx512::kTable : avx2::kTable;
}

const SimdTable& simd_table() {
  static const SimdTable& best = []() -> const SimdTable& {
    if (!supports(Isa::kAvx2)) throw Error("the kernels need a processor with AVX2 and FMA (x86-64-v3)");
    return simd_table(supports(Isa::kAvx512) ? Isa::kAvx512 : Isa::kAvx2);
  }();
  return best;
}

}  // namespace dew::kernels::cpu
