#include "kernels/cpu/simd/isa.h"

#include "base/check.h"

namespace dew::kernels::cpu {

bool supports(Isa isa) {
  const bool avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  if (isa == Isa::kAvx2) return avx2;
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  return avx512 && (isa == Isa::kAvx512 || __builtin_cpu_supports("avx512bf16"));
}

Isa best_isa() {
  static const Isa kBest = [] {
    if (!supports(Isa::kAvx2)) throw Error("the kernels need a processor with AVX2 and FMA (x86-64-v3)");
    if (supports(Isa::kAvx512Bf16)) return Isa::kAvx512Bf16;
    return supports(Isa::kAvx512) ? Isa::kAvx512 : Isa::kAvx2;
  }();
  return kBest;
}

}  // namespace dew::kernels::cpu
