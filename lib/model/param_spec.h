// What a block declares of a parameter. Names and shapes are global: no layout appears here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/shape.h"

namespace dew {

/// What a dim of a parameter means; the layout rules map it to mesh axes.
enum class LogicalAxis : std::uint8_t { kVocab, kPositions, kWidth, kHeadWidth, kHeads, kKvHeads, kMlp };
inline constexpr int kLogicalAxisCount = 7;

/// "vocab", "positions", "width", "head_width", "heads", "kv_heads", "mlp".
std::string_view name_of(LogicalAxis axis);

/// The meaning of a dim, and in how many indivisible units (heads) it may be cut; 0: element by element.
struct DimMeaning {
  // NOLINTNEXTLINE(google-explicit-constructor): most dims say their meaning alone
  DimMeaning(LogicalAxis meaning, std::int64_t parts = 0) : axis(meaning), units(parts) {}
  LogicalAxis axis;
  std::int64_t units;
  bool operator==(const DimMeaning&) const = default;
};

struct Init {
  double stddev = 0;  ///< of a normal distribution around 0; 0: the constant below
  double constant = 0;
  static Init normal(double stddev) { return {stddev, 0}; }
  static Init ones() { return {0, 1}; }
  static Init zeros() { return {}; }
};

struct ParamSpec {
  std::string name;              ///< "layers.3.attention.wq"; the same name twice is one tied parameter
  Shape shape;                   ///< global
  std::vector<DimMeaning> axes;  ///< one a dim
  Init init;

  /// Weight decay goes to matrices, not to norms and biases.
  bool decays() const { return shape.dims() >= 2; }
};

}  // namespace dew
