#include "train/gathered_state.h"

namespace dew {

void place_owned(const ParamStore& store, const ShardedParameter& param, const Tensor& shard,
                 std::span<double> whole) {
  visit_float(shard.dtype(), [&](auto zero) {
    const auto* values = shard.template data<decltype(zero)>();
    for (std::int64_t i = 0; i < shard.numel(); ++i) {
      const std::int64_t at = param.layout.global_index(store.mesh().coord(), param.range.begin + i);
      whole[static_cast<std::size_t>(at)] = static_cast<double>(values[i]);
    }
  });
}

}  // namespace dew
