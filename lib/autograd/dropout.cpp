#include "autograd/dropout.h"

namespace dew {

Var dropout(Tape& tape, const Var& x, const kernels::Dropout& draw, const kernels::TokenPlaces& places) {
  if (!draw.active()) return x;
  Tensor y = tape.empty(x.value.shape(), x.value.dtype());
  kernels::dropout(tape.stream(), draw, places, x.value, {y});
  return tape.record("dropout", {x}, y, x.placements, [draw, places](Backward& g) {
    if (g.wants(0)) kernels::dropout(g.stream(), draw, places, g.out(), g.in(0));
  });
}

}  // namespace dew
