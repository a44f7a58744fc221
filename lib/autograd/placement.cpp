#include "autograd/placement.h"

namespace dew {

Placements Placements::sharded(AxisSet axes) {
  Placements placements;
  for (Axis axis : kAllAxes)
    if (axes.has(axis)) placements[axis] = Placement::kSharded;
  return placements;
}

AxisSet Placements::axes_that_are(Placement placement) const {
  AxisSet axes;
  for (Axis axis : kAllAxes)
    if ((*this)[axis] == placement) axes = axes.with(axis);
  return axes;
}

Placements Placements::summed() const {
  Placements result = *this;
  for (Axis axis : kAllAxes)
    if (result[axis] == Placement::kSharded) result[axis] = Placement::kPartial;
  return result;
}

std::string Placements::str() const {
  const AxisSet sharded_axes = axes_that_are(Placement::kSharded),
                partial_axes = axes_that_are(Placement::kPartial);
  std::string text;
  if (!sharded_axes.empty()) text = "sharded(" + sharded_axes.str() + ")";
  if (!partial_axes.empty()) text += (text.empty() ? "partial(" : " partial(") + partial_axes.str() + ")";
  return text.empty() ? "replicated" : text;
}

}  // namespace dew
