#include "autograd/linear.h"

#include "kernels/bias.h"
#include "kernels/gemm.h"

namespace dew {

using kernels::Transpose;

namespace {

/// The placements of y, after a check that x is placed as the split of the weight needs.
Placements placed(Tape& tape, const Var& x, ParamRef w) {
  const AxisSet columns = tape.split_of(w, 0), rows = tape.split_of(w, 1);
  DEW_CHECK(columns.empty() || rows.empty(), columns.str(), rows.str());
  Placements placements = x.placements;
  for (Axis axis : kAllAxes) {
    if (columns.has(axis)) {
      DEW_CHECK(x.placements[axis] == Placement::kReplicated, name_of(axis), x.placements.str());
      placements[axis] = Placement::kSharded;
    }
    if (rows.has(axis)) {
      DEW_CHECK(x.placements[axis] == Placement::kSharded, name_of(axis), x.placements.str());
      placements[axis] = Placement::kPartial;
    }
  }
  return placements;
}

}  // namespace

Var linear(Tape& tape, const Var& x, ParamRef w) {
  const Tensor& weight = tape.param(w);
  DEW_CHECK(x.value.shape().dims() == 2 && weight.dim(1) == x.value.dim(1), x.value.shape(), weight.shape());
  const Placements placements = placed(tape, x, w);
  Tensor y = tape.empty({x.value.dim(0), weight.dim(0)}, x.value.dtype());
  kernels::gemm(tape.stream(), x.value, Transpose::kNo, weight, Transpose::kYes, {y});
  return tape.record(
      "linear", {x}, y, placements,
      [w](Backward& g) {
        if (g.wants(0))
          kernels::gemm(g.stream(), g.out(), Transpose::kNo, g.param(w), Transpose::kNo, g.in(0));
      },
      [w, saved = x.value](WeightBackward& g) {
        kernels::gemm(g.stream(), g.out(), Transpose::kYes, saved, Transpose::kNo, g.grad(w));
      });
}

Var add_bias(Tape& tape, const Var& x, ParamRef bias) {
  DEW_CHECK(!x.placements.any_partial(), x.placements.str());
  for (Axis axis : kAllAxes)
    DEW_CHECK(!tape.split_of(bias, 0).has(axis) || x.placements[axis] == Placement::kSharded, name_of(axis),
              x.placements.str());
  Tensor y = tape.empty(x.value.shape(), x.value.dtype());
  kernels::add_bias(tape.stream(), x.value, tape.param(bias), y);
  return tape.record("add_bias", {x}, y, x.placements, [bias](Backward& g) {
    kernels::bias_backward(g.stream(), g.out(), g.grad(bias));
    g.pass(0, g.out());
  });
}

}  // namespace dew
