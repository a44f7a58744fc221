#include "kernels/cpu/simd/attention_table.h"

namespace dew::kernels::cpu {

namespace avx2 {
extern const AttentionTable kAttentionTable;
}
namespace avx512 {
extern const AttentionTable kAttentionTable;
}

const AttentionTable& attention_table(Isa isa) {
  return isa == Isa::kAvx2 ? avx2::kAttentionTable : avx512::kAttentionTable;
}

template <>
const AttentionOps<float>& attention_ops<float>() {
  return attention_table(best_isa()).f32;
}
template <>
const AttentionOps<double>& attention_ops<double>() {
  return attention_table(best_isa()).f64;
}

}  // namespace dew::kernels::cpu
