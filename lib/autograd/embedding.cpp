#include "autograd/embedding.h"

#include "kernels/embedding.h"

namespace dew {

Var embedding(Tape& tape, const Tensor& tokens, const Placements& placements, ParamRef table) {
  const Tensor& values = tape.param(table);
  DEW_CHECK(tape.split_of(table, 1).empty(), tape.split_of(table, 1).str());
  Placements placed = placements;
  for (Axis axis : kAllAxes) {
    if (!tape.split_of(table, 0).has(axis)) continue;
    DEW_CHECK(placements[axis] == Placement::kReplicated, name_of(axis), placements.str());
    placed[axis] = Placement::kPartial;
  }
  const kernels::VocabPart part{tape.offset_of(table, 0), tape.global_of(table, 0)};
  const Tensor flat = tokens.range(0, tokens.numel());
  Tensor y = tape.empty({tokens.numel(), values.dim(1)}, values.dtype());
  kernels::embedding_forward(tape.stream(), flat, values, part, y);
  return tape.record(
      "embedding", {}, y, placed, [](Backward&) {},
      [table, part, flat](WeightBackward& g) {
        kernels::embedding_backward(g.stream(), flat, g.out(), part, g.grad(table));
      });
}

}  // namespace dew
