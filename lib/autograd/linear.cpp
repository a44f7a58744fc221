#include "autograd/linear.h"

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

}  // namespace dew
