#include "autograd/embedding.h"

#include "kernels/embedding.h"

namespace dew {

Var embedding(Tape& tape, const Tensor& tokens, const Placements& placements, ParamRef table) {
  const Tensor& values = tape.param(table);
  const Tensor flat = tokens.range(0, tokens.numel());
  Tensor y = tape.empty({tokens.numel(), values.dim(1)}, values.dtype());
  kernels::embedding_forward(tape.stream(), flat, values, y);
  return tape.record(
      "embedding", {}, y, placements, [](Backward&) {},
      [table, flat](WeightBackward& g) {
        kernels::embedding_backward(g.stream(), flat, g.out(), g.grad(table));
      });
}

}  // namespace dew
