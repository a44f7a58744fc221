#include "autograd/pointwise.h"

#include "kernels/pointwise.h"

namespace dew {

Var add(Tape& tape, const Var& a, const Var& b) {
  DEW_CHECK(a.value.shape() == b.value.shape(), a.value.shape(), b.value.shape());
  DEW_CHECK(a.placements == b.placements, a.placements.str(), b.placements.str());
  Tensor y = tape.empty(a.value.shape(), a.value.dtype());
  kernels::add(tape.stream(), a.value, b.value, y);
  return tape.record("add", {a, b}, y, a.placements, [](Backward& g) {
    g.pass(0, g.out());
    g.pass(1, g.out());
  });
}

Var swiglu(Tape& tape, const Var& gate, const Var& up) {
  DEW_CHECK(gate.placements == up.placements, gate.placements.str(), up.placements.str());
  DEW_CHECK(!gate.placements.any_partial(), gate.placements.str());
  Tensor y = tape.empty(gate.value.shape(), gate.value.dtype());
  kernels::swiglu_forward(tape.stream(), gate.value, up.value, y);
  return tape.record("swiglu", {gate, up}, y, gate.placements,
                     [gate = gate.value, up = up.value](Backward& g) {
                       kernels::swiglu_backward(g.stream(), gate, up, g.out(), g.in_or_scratch(0, gate),
                                                g.in_or_scratch(1, up));
                     });
}

Var gelu(Tape& tape, const Var& x, kernels::Gelu kind) {
  DEW_CHECK(!x.placements.any_partial(), x.placements.str());
  Tensor y = tape.empty(x.value.shape(), x.value.dtype());
  kernels::gelu_forward(tape.stream(), kind, x.value, y);
  return tape.record("gelu", {x}, y, x.placements, [kind, x = x.value](Backward& g) {
    if (g.wants(0)) kernels::gelu_backward(g.stream(), kind, x, g.out(), g.in(0));
  });
}

Var reshape(Tape& tape, const Var& x, const Shape& shape) {
  return tape.record("reshape", {x}, x.value.reshape(shape), x.placements,
                     [](Backward& g) { g.pass(0, g.out()); });
}

}  // namespace dew
