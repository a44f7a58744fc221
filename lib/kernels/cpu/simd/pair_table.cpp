#include "kernels/cpu/simd/pair_table.h"

#include "base/check.h"

namespace dew::kernels::cpu {

namespace avx2 {
extern const PairPacking kPairPacking;
}
namespace avx512 {
extern const PairPacking kPairPacking;
}
namespace avx512_bf16 {
extern const PairTable kPairTable;
}

const PairPacking& pair_packing(Isa isa) {
  return isa == Isa::kAvx2 ? avx2::kPairPacking : avx512::kPairPacking;
}

bool has_pair_products() {
  return supports(Isa::kAvx512Bf16);
}

const PairTable& pair_table() {
  DEW_CHECK(has_pair_products());
  return avx512_bf16::kPairTable;
}

}  // namespace dew::kernels::cpu
