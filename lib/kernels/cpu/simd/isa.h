// The instruction sets that the leaf loops are compiled for, and the machine's choice among them.
#pragma once

#include <cstdint>

namespace dew::kernels::cpu {

enum class Isa : std::uint8_t { kAvx2, kAvx512, kAvx512Bf16 };

/// True when this processor runs the leaves of `isa`. Leaves that do not round to bf16 exist up to kAvx512,
/// which stands for what comes after it too.
bool supports(Isa isa);

/// The fastest one that this processor runs; every table of leaves follows it. Throws Error without AVX2 and
/// FMA.
Isa best_isa();

}  // namespace dew::kernels::cpu
