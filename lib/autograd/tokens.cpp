#include "autograd/tokens.h"

#include <algorithm>

#include "kernels/pointwise.h"
#include "tensor/copy.h"

namespace dew {
namespace {

/// What the closures of both ops know: sizes, and the group, which outlives every tape.
struct TokenSplit {
  Communicator* group;
  std::int64_t tokens, chunk;
  Range own;

  TokenSplit(const Mesh& mesh, std::int64_t all)
      : group(&mesh.along(Axis::kTensor)),
        tokens(all),
        chunk((all + group->size() - 1) / group->size()),
        own(own_rows(mesh, all)) {}

  /// x [own rows, D] -> [T, D]. The last chunks are padded with zeros while they travel.
  Tensor gather(Stream& stream, const Tensor& x) const {
    const std::int64_t width = x.dim(1);
    Tensor padded = Tensor::empty({chunk * group->size(), width}, x.dtype(), stream, Owner::kActivations);
    const Tensor place = padded.rows(chunk * group->rank(), chunk * (group->rank() + 1));
    copy(stream, x, place.rows(0, own.size()));
    fill_rest(stream, place, own.size());
    const Transfer transfer{place, padded};
    group->all_gather({&transfer, 1}, stream).wait(stream);
    return padded.rows(0, tokens);
  }

  /// y [T, D], of which every rank has a summand -> [own rows, D].
  Tensor scatter(Stream& stream, const Tensor& y) const {
    const std::int64_t width = y.dim(1), padded_rows = chunk * group->size();
    Tensor padded = y;
    if (padded_rows != tokens) {
      padded = Tensor::empty({padded_rows, width}, y.dtype(), stream, Owner::kBuffers);
      copy(stream, y, padded.rows(0, tokens));
      fill_rest(stream, padded, tokens);
    }
    const Tensor sum = Tensor::empty({chunk, width}, y.dtype(), stream, Owner::kActivations);
    const Transfer transfer{padded, sum};
    group->reduce_scatter({&transfer, 1}, stream).wait(stream);
    return sum.rows(0, own.size());
  }

 private:
  static void fill_rest(Stream& stream, const Tensor& x, std::int64_t begin) {
    if (begin < x.dim(0)) fill(stream, x.rows(begin, x.dim(0)), 0);
  }
};

/// The derivative of a cut: zeros in the rows of the others.
void paste(Backward& g, const Shape& shape, Range own) {
  if (!g.wants(0)) return;
  const Target whole = g.in(0);
  const Tensor rows = whole.into.rows(own.begin, own.end);
  if (whole.accumulate) {
    kernels::add(g.stream(), rows, g.out(), rows);
    return;
  }
  fill(g.stream(), whole.into.rows(0, own.begin), 0);
  copy(g.stream(), g.out(), rows);
  fill(g.stream(), whole.into.rows(own.end, shape.dim(0)), 0);
}

}  // namespace

Range own_rows(const Mesh& mesh, std::int64_t tokens) {
  const std::int64_t ranks = mesh.extent(Axis::kTensor), chunk = (tokens + ranks - 1) / ranks;
  const std::int64_t begin = std::min(chunk * mesh.coord(Axis::kTensor), tokens);
  return {begin, std::min(begin + chunk, tokens)};
}

Var whole_tokens(Scope& scope, const Var& x, std::int64_t tokens) {
  if (scope.mesh.extent(Axis::kTensor) == 1) return x;
  const TokenSplit split(scope.mesh, tokens);
  DEW_CHECK(x.placements[Axis::kTensor] == Placement::kSharded, x.placements.str());
  DEW_CHECK(x.value.shape().dims() == 2 && x.value.dim(0) == split.own.size(), x.value.shape(), tokens);
  Placements placements = x.placements;
  placements[Axis::kTensor] = Placement::kReplicated;
  Tensor whole = split.gather(scope.tape.stream(), x.value);
  // A constant's gradient is not wanted on any rank.
  return scope.tape.record("whole_tokens", {x}, std::move(whole), placements, [split](Backward& g) {
    if (g.wants(0)) g.pass(0, split.scatter(g.stream(), g.out()));
  });
}

Var own_tokens(Scope& scope, const Var& y) {
  if (scope.mesh.extent(Axis::kTensor) == 1) return y;
  const Placement placement = y.placements[Axis::kTensor];
  DEW_CHECK(placement != Placement::kSharded, y.placements.str());
  DEW_CHECK(y.value.shape().dims() >= 1, y.value.shape());
  const TokenSplit split(scope.mesh, y.value.dim(0));
  Placements placements = y.placements;
  placements[Axis::kTensor] = Placement::kSharded;
  if (placement == Placement::kPartial) {
    Tensor own = split.scatter(scope.tape.stream(), y.value);
    return scope.tape.record("own_tokens", {y}, std::move(own), placements, [split](Backward& g) {
      if (g.wants(0)) g.pass(0, split.gather(g.stream(), g.out()));
    });
  }
  Tensor own = y.value.rows(split.own.begin, split.own.end);
  if (y.slot < 0) return {std::move(own), placements, -1};
  return scope.tape.record(
      "own_tokens", {y}, std::move(own), placements,
      [shape = y.value.shape(), rows = split.own](Backward& g) { paste(g, shape, rows); });
}

}  // namespace dew
