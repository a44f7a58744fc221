#include "autograd/loss.h"

#include <algorithm>

#include "kernels/cross_entropy.h"
#include "kernels/pointwise.h"
#include "tensor/copy.h"

namespace dew {

using kernels::Transpose;

namespace {

/// The loss of chunks of logits, and their gradient in place.
struct ChunkLoss {
  Stream& stream;
  Communicator* group;  ///< of the vocabulary's parts; null where this rank has all of it
  kernels::VocabPart part;
  double scale;
  bool gradient;
  Tensor sum;  ///< [1] f64

  void add(const Tensor& logits, const Tensor& targets) const {
    if (group != nullptr)
      add_parts(logits, targets);
    else if (gradient)
      kernels::cross_entropy_in_place(stream, logits, targets, scale, sum);
    else
      kernels::cross_entropy_loss(stream, logits, targets, sum);
  }

 private:
  void add_parts(const Tensor& logits, const Tensor& targets) const {
    const Tensor all = Tensor::empty({group->size(), targets.numel(), kernels::kPartNumbers}, DType::kF64,
                                     stream, Owner::kBuffers);
    const Tensor own = all.rows(group->rank(), group->rank() + 1);
    kernels::cross_entropy_part(stream, logits, targets, part, own);
    const Transfer transfer{own, all};
    group->all_gather({&transfer, 1}, stream).wait(stream);
    kernels::cross_entropy_joined_loss(stream, all, targets, sum);
    if (gradient)
      kernels::cross_entropy_joined_gradient(stream, all, group->rank(), targets, part, scale, logits);
  }
};

}  // namespace

Var head_loss(Scope& scope, const Var& x, ParamRef w, const Tensor& targets, double scale,
              std::int64_t chunk) {
  Tape& tape = scope.tape;
  DEW_CHECK(!x.placements.any_partial(), x.placements.str());
  DEW_CHECK(x.value.dim(0) == targets.numel() && chunk >= 1, x.value.shape(), targets.shape(), chunk);
  const AxisSet split = tape.split_of(w, 0);
  DEW_CHECK(tape.split_of(w, 1).empty(), tape.split_of(w, 1).str());
  for (Axis axis : kAllAxes)
    DEW_CHECK(!split.has(axis) || x.placements[axis] == Placement::kReplicated, name_of(axis),
              x.placements.str());
  Stream& stream = tape.stream();
  const Tensor& weight = tape.param(w);
  const std::int64_t tokens = x.value.dim(0), columns = weight.dim(0),
                     step = std::min(chunk, std::max<std::int64_t>(tokens, 1));
  const Tensor flat_targets = targets.range(0, tokens);
  const ChunkLoss chunk_loss{stream,
                             split.empty() ? nullptr : &scope.mesh.over(split),
                             {tape.offset_of(w, 0), tape.global_of(w, 0)},
                             scale,
                             tape.differentiates(),
                             Tensor::zeros({1}, DType::kF64, stream, Owner::kActivations)};
  Tensor dx;
  if (tape.differentiates()) dx = tape.empty(x.value.shape(), x.value.dtype());
  const DType dtype = x.value.dtype();
  // Of bf16 the logits are f32, and their gradient is rounded for its products.
  const Tensor logits = Tensor::empty({step, columns}, real_of(dtype), stream, Owner::kBuffers);
  const bool rounds = tape.differentiates() && dtype != real_of(dtype);
  const Tensor rounded = rounds ? Tensor::empty({step, columns}, dtype, stream, Owner::kBuffers) : Tensor{};
  // One pass where there are no tokens: the weight gradient is then written, as zeros.
  std::int64_t begin = 0;
  do {
    const std::int64_t end = std::min(tokens, begin + step);
    const Tensor rows = x.value.rows(begin, end), part = logits.rows(0, end - begin);
    kernels::gemm(stream, rows, Transpose::kNo, weight, Transpose::kYes, {part});
    chunk_loss.add(part, flat_targets.range(begin, end));
    if (tape.differentiates()) {
      const Tensor gradient = rounds ? rounded.rows(0, end - begin) : part;
      if (rounds) kernels::cast(stream, part, gradient);
      kernels::gemm(stream, gradient, Transpose::kNo, weight, Transpose::kNo, {dx.rows(begin, end)});
      kernels::gemm(stream, gradient, Transpose::kYes, rows, Transpose::kNo, tape.param_gradient(w));
    }
    begin = end;
  } while (begin < tokens);
  kernels::scale(stream, chunk_loss.sum, scale);
  return tape.record("head_loss", {x}, chunk_loss.sum, x.placements.summed(), [dx](Backward& g) {
    DEW_CHECK(g.stream().device().is_meta() || read_scalar(g.stream(), g.out()) == 1.0);
    g.pass(0, dx);
  });
}

}  // namespace dew
