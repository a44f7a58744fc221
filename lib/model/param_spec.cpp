#include "model/param_spec.h"

#include <array>

namespace dew {

std::string_view name_of(LogicalAxis axis) {
  constexpr std::array<std::string_view, kLogicalAxisCount> kNames{
      "vocab", "positions", "width", "head_width", "heads", "kv_heads", "mlp"};
  return kNames[static_cast<std::size_t>(axis)];
}

}  // namespace dew
