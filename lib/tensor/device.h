// Where a tensor lives. kMeta tensors have shapes and owners but no memory: the dry run uses them.
#pragma once

#include <cstdint>

namespace dew {

struct Device {
  enum class Kind : std::uint8_t { kCpu, kCuda, kMeta };
  Kind kind = Kind::kCpu;
  int index = 0;

  bool operator==(const Device&) const = default;
  bool is_meta() const { return kind == Kind::kMeta; }
};

}  // namespace dew
