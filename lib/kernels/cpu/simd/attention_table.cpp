#include "kernels/cpu/simd/attention_table.h"

#include "base/check.h"

namespace dew::kernels::cpu {

namespace avx2 {
extern const AttentionTable kAttentionTable;
}
namespace avx512 {
extern const AttentionTable kAttentionTable;
}

const AttentionTable& attention_table(Isa isa) {
  return isa == Isa::kAvx512 ? avx512::kAttentionTable : avx2::kAttentionTable;
}

namespace {

const AttentionTable& best_table() {
  if (!supports(Isa::kAvx2)) throw Error("the kernels need a processor with AVX2 and FMA (x86-64-v3)");
  return attention_table(supports(Isa::kAvx512) ? Isa::kAvx512 : Isa::kAvx2);
}

}  // namespace

template <>
const AttentionOps<float>& attention_ops<float>() {
  return best_table().f32;
}
template <>
const AttentionOps<double>& attention_ops<double>() {
  return best_table().f64;
}

}  // namespace dew::kernels::cpu
