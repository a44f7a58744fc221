#include "autograd/rope.h"

namespace dew {

const Tensor& RopeTables::get(Stream& stream, std::int64_t begin, std::int64_t length,
                              std::int64_t head_width, const kernels::RopeAngles& angles, DType dtype) {
  // Tables hold what numbers of the dtype are computed in.
  dtype = real_of(dtype);
  Tensor& table = tables_[{begin, length, head_width, angles, dtype}];
  if (!table.defined()) {
    table = Tensor::empty({length, head_width}, dtype, stream, Owner::kBuffers);
    kernels::rope_table(stream, begin, begin + length, angles, table);
  }
  return table;
}

Var rope(Tape& tape, const Var& x, const Tensor& table, const Tensor& rows) {
  Tensor y = tape.empty(x.value.shape(), x.value.dtype());
  kernels::rope(tape.stream(), x.value, table, rows, kernels::RopeDirection::kForward, {y});
  return tape.record("rope", {x}, y, x.placements, [table, rows](Backward& g) {
    if (g.wants(0))
      kernels::rope(g.stream(), g.out(), table, rows, kernels::RopeDirection::kInverse, g.in(0));
  });
}

}  // namespace dew
