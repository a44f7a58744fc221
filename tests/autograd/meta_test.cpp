// The dry run: the same ops on tensors without memory count the same bytes and the same work.
#include <gtest/gtest.h>

#include "autograd/attention.h"
#include "autograd/embedding.h"
#include "autograd/linear.h"
#include "autograd/loss.h"
#include "autograd/norm.h"
#include "autograd/pointwise.h"
#include "autograd/remat.h"
#include "autograd/select_heads.h"
#include "support/gradcheck.h"

namespace dew::test {
namespace {

constexpr std::int64_t kSamples = 2, kLength = 33, kHeads = 4, kKvHeads = 2, kHeadWidth = 6, kWidth = 24,
                       kVocab = 17;
const std::vector<Shape> kParams{
    {kVocab, kWidth}, {kWidth}, {kHeads * kHeadWidth, kWidth}, {kKvHeads * kHeadWidth, kWidth}};

/// Every op once or more, forward and back, with some of it recomputed.
void run_every_op(Workbench& bench, bool differentiate, WeightMode mode) {
  GradientStore store(bench, kParams);
  ParamViews bound;
  for (const Shape& shape : kParams)
    bound.values.push_back(bench.random(shape, 1, DType::kF64, Owner::kGathered));
  if (differentiate) bound.gradients = &store;
  const std::int64_t tokens = kSamples * kLength;
  const std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens), 3);
  const Mesh mesh(MeshShape{}, MeshCoord{}, {});
  const RematPolicy policy{false, {"gated"}};
  RopeTables tables;
  Tape tape(bench.stream, bound);
  Scope scope{tape, mesh, policy, tables};

  const Var x = embedding(tape, bench.ints({kSamples, kLength}, ids), {}, ParamRef{0});
  const Var h = rms_norm(tape, x, ParamRef{1}, 1e-5);
  const Tensor table = tables.get(bench.stream, 0, kLength, kHeadWidth, {100}, DType::kF64);
  const Shape heads{kSamples, kLength, kHeads, kHeadWidth}, kv_heads{kSamples, kLength, kKvHeads, kHeadWidth};
  const Var q = rope(tape, reshape(tape, linear(tape, h, ParamRef{2}), heads), table);
  const Var kv = select_heads(tape, reshape(tape, linear(tape, h, ParamRef{3}), kv_heads), {1, 0, 1, 1}, {});
  const Var o = reshape(tape, attention(tape, q, kv, kv, {.window = 5}), {tokens, kWidth});
  const Vars gated = remat(scope, "gated", {o, h}, [](Scope& s, const Vars& in) -> Vars {
    return {swiglu(s.tape, linear(s.tape, in[0], ParamRef{2}), in[1])};
  });
  EXPECT_EQ(x.value.raw() == nullptr, bench.stream.device().is_meta());
  const Var loss = head_loss(scope, add(tape, x, gated[0]), ParamRef{0}, bench.ints({tokens}, ids), 0.5, 10);
  if (!differentiate) return;
  const Tensor one = bench.tensor({1}, {1});
  DeferredWork work;
  tape.backward(std::vector<Seed>{{loss, one}}, bound, mode, &work);
  work.run(bench.stream, bound);
}

void expect_same_counts(bool differentiate, WeightMode mode) {
  Workbench cpu, meta(Device::Kind::kMeta);

  run_every_op(cpu, differentiate, mode);
  run_every_op(meta, differentiate, mode);

  EXPECT_EQ(meta.allocator.use().reserved, cpu.allocator.use().reserved);
  EXPECT_EQ(meta.allocator.use().peak, cpu.allocator.use().peak);
  EXPECT_EQ(meta.allocator.use().total_peak, cpu.allocator.use().total_peak);
  for (std::size_t i = 0; i < kKernelKindCount; ++i) {
    const auto kind = static_cast<KernelKind>(i);
    EXPECT_EQ(meta.stream.profile()[kind].calls, cpu.stream.profile()[kind].calls) << name_of(kind);
    EXPECT_EQ(meta.stream.profile()[kind].flops, cpu.stream.profile()[kind].flops) << name_of(kind);
    EXPECT_EQ(meta.stream.profile()[kind].bytes, cpu.stream.profile()[kind].bytes) << name_of(kind);
  }
  for (KernelKind kind : {KernelKind::kGemm, KernelKind::kAttention, KernelKind::kNorm, KernelKind::kRope,
                          KernelKind::kActivation, KernelKind::kEmbedding, KernelKind::kCrossEntropy})
    EXPECT_GT(meta.stream.profile()[kind].calls, 0) << name_of(kind) << " was not run";
}

TEST(MetaTape, CountsWhatTheCpuCounts) {
  expect_same_counts(true, WeightMode::kNow);
}
TEST(MetaTape, CountsItWithDeferredWeights) {
  expect_same_counts(true, WeightMode::kDefer);
}
TEST(MetaTape, CountsItWhileEvaluating) {
  expect_same_counts(false, WeightMode::kNow);
}

}  // namespace
}  // namespace dew::test
