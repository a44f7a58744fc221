// How a value relates to the other ranks of each mesh axis. Ops check placements, so that a sum taken twice,
// or a nonlinear function of a partial sum, does not run.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "comm/axis.h"

namespace dew {

enum class Placement : std::uint8_t {
  kReplicated,  ///< the same on every rank of the axis; its gradient is a partial sum
  kSharded,     ///< every rank has its own part (of the tokens, of the width)
  kPartial,     ///< the value is the sum over the ranks of the axis
};

class Placements {
 public:
  Placements() = default;  ///< replicated on every axis
  /// Sharded over these axes, replicated on the others.
  static Placements sharded(AxisSet axes);

  Placement operator[](Axis axis) const { return on_[static_cast<std::size_t>(axis)]; }
  Placement& operator[](Axis axis) { return on_[static_cast<std::size_t>(axis)]; }
  AxisSet axes_that_are(Placement placement) const;
  bool any_partial() const { return !axes_that_are(Placement::kPartial).empty(); }
  /// The same with every sharded axis turned partial: what a sum over the local part is.
  Placements summed() const;
  std::string str() const;  ///< "sharded(fsdp) partial(tensor)"; "replicated" when nothing else

  bool operator==(const Placements&) const = default;

 private:
  std::array<Placement, kAxisCount> on_{};
};

}  // namespace dew
