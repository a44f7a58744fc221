#include "autograd/select_heads.h"

#include "kernels/heads.h"

namespace dew {

Var select_heads(Tape& tape, const Var& x, const std::vector<std::int64_t>& heads, AxisSet by) {
  DEW_CHECK(x.value.shape().dims() == 4, x.value.shape());
  Placements placements = x.placements;
  for (Axis axis : kAllAxes) {
    if (!by.has(axis)) continue;
    DEW_CHECK(x.placements[axis] == Placement::kReplicated, name_of(axis), x.placements.str());
    placements[axis] = Placement::kSharded;
  }
  const Shape shape{x.value.dim(0), x.value.dim(1), static_cast<std::int64_t>(heads.size()), x.value.dim(3)};
  Tensor y = tape.empty(shape, x.value.dtype());
  kernels::select_heads(tape.stream(), x.value, heads, y);
  return tape.record("select_heads", {x}, y, placements, [heads](Backward& g) {
    if (g.wants(0)) kernels::select_heads_backward(g.stream(), g.out(), heads, g.in(0));
  });
}

}  // namespace dew
