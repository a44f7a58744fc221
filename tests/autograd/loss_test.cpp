// The fused head: its gradients, its chunks, its masked targets, and that both are formed in the forward.
#include "autograd/loss.h"

#include <gtest/gtest.h>

#include "autograd/embedding.h"
#include "autograd/norm.h"
#include "support/gradcheck.h"
#include "support/lone_rank.h"

namespace dew::test {
namespace {

constexpr ParamRef kWeight{0};
constexpr std::int64_t kVocab = 7, kWidth = 3;
const std::vector<std::int32_t> kTargets{6, -1, 0, 3, 3};

Var loss_of(Workbench& bench, Tape& tape, const Var& x, const std::vector<std::int32_t>& targets,
            std::int64_t chunk, double scale = 0.25) {
  const Tensor t = bench.ints({static_cast<std::int64_t>(targets.size())}, targets);
  LoneRank lone;
  Scope scope = lone.scope(tape);
  return head_loss(scope, x, kWeight, t, scale, chunk);
}

/// One run forward and back.
struct Result {
  Tensor loss, dx, dw;
};
Result run(Workbench& bench, const std::vector<std::int32_t>& targets, std::int64_t chunk,
           DType dtype = DType::kF64) {
  const auto tokens = static_cast<std::int64_t>(targets.size());
  GradientStore store(bench, {{kVocab, kWidth}}, dtype);
  const ParamViews bound{{bench.random({kVocab, kWidth}, 1, dtype)}, {}, &store};
  Tape tape(bench.stream, bound);
  const Var x = tape.input(bench.random({tokens, kWidth}, 2, dtype), {});
  const Var loss = loss_of(bench, tape, x, targets, chunk);
  tape.backward(std::vector<Seed>{{loss, bench.tensor({1}, {1})}}, bound, WeightMode::kNow, nullptr);
  return {loss.value, tape.take_gradient(x), store.of(0)};
}

/// Plain cross-entropy in the order of the formula.
double plain_loss(const Numbers& x, const Numbers& w, const std::vector<std::int32_t>& targets) {
  double sum = 0;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    if (targets[t] < 0) continue;
    Numbers logits(kVocab, 0.0);
    double total = 0;
    for (std::size_t v = 0; v < logits.size(); ++v) {
      for (std::size_t d = 0; d < kWidth; ++d) logits[v] += x[t * kWidth + d] * w[v * kWidth + d];
      total += std::exp(logits[v]);
    }
    sum += std::log(total) - logits[static_cast<std::size_t>(targets[t])];
  }
  return sum;
}

TEST(HeadLoss, IsTheScaledSumOfCrossEntropies) {
  Workbench bench;
  const double expected = 0.25 * plain_loss(draw(2, 5 * kWidth), draw(1, kVocab * kWidth), kTargets);

  EXPECT_NEAR(numbers(run(bench, kTargets, 2).loss)[0], expected, 1e-14);
}

TEST(HeadLoss, HasTheGradientsOfItsDifferencesInAnyChunks) {
  for (std::int64_t chunk : {1, 2, 3, 5, 100}) {
    SCOPED_TRACE(chunk);
    check_gradients({{{5, kWidth}},
                     {{kVocab, kWidth}},
                     [chunk](Workbench& bench, Tape& tape, const Vars& v) -> Vars {
                       return {loss_of(bench, tape, v[0], kTargets, chunk)};
                     },
                     true});
  }
}

TEST(HeadLoss, HasThemAboveAVector) {
  check_gradients({{{3, 33}},
                   {{257, 33}},
                   [](Workbench& bench, Tape& tape, const Vars& v) -> Vars {
                     return {loss_of(bench, tape, v[0], {256, 17, 0}, 2, 1)};
                   },
                   true});
}

TEST(HeadLoss, HasThemThroughATiedTable) {
  check_gradients({{},
                   {{kVocab, kWidth}, {kWidth}},
                   [](Workbench& bench, Tape& tape, const Vars&) -> Vars {
                     const Tensor tokens = bench.ints({1, 5}, {0, 6, 3, 6, 2});
                     const Var x = rms_norm(tape, embedding(tape, tokens, {}, kWeight), ParamRef{1}, 1e-2);
                     return {loss_of(bench, tape, x, kTargets, 2)};
                   },
                   true});
}

TEST(HeadLoss, AddsToAWeightGradientThatIsThere) {
  constexpr double kRoundoff = 1e-15;
  Workbench bench;
  GradientStore store(bench, {{kVocab, kWidth}});
  const ParamViews bound{{bench.random({kVocab, kWidth}, 1)}, {}, &store};
  Tape tape(bench.stream, bound);
  const Var x = tape.input(bench.random({5, kWidth}, 2), {});

  loss_of(bench, tape, x, kTargets, 2);
  const Numbers once = numbers(store.of(0));
  loss_of(bench, tape, x, kTargets, 2);

  Numbers twice = once;
  for (double& value : twice) value *= 2;
  expect_near(numbers(store.of(0)), twice, kRoundoff);
}

TEST(HeadLoss, ChunksChangeNoMoreThanTheOrderOfOneSum) {
  constexpr double kRoundoff = 1e-15;  // of sums of five terms below one
  Workbench bench;
  const Result whole = run(bench, kTargets, 5);
  for (std::int64_t chunk : {1, 2, 3, 4}) {
    const Result part = run(bench, kTargets, chunk);
    EXPECT_NEAR(numbers(part.loss)[0], numbers(whole.loss)[0], kRoundoff) << chunk;
    expect_near(numbers(part.dx), numbers(whole.dx), kRoundoff);
    expect_near(numbers(part.dw), numbers(whole.dw), kRoundoff);
  }
}

TEST(HeadLoss, GivesMaskedTokensNoGradient) {
  Workbench bench;
  const Numbers dx = numbers(run(bench, kTargets, 2).dx);

  for (std::size_t d = 0; d < kWidth; ++d) {
    EXPECT_EQ(dx[kWidth + d], 0.0);
    EXPECT_NE(dx[d], 0.0);
  }
}

TEST(HeadLoss, OfMaskedTokensAloneIsZero) {
  Workbench bench;
  const Result all = run(bench, {-1, -1, -1}, 2);

  EXPECT_EQ(numbers(all.loss)[0], 0.0);
  EXPECT_EQ(numbers(all.dx), Numbers(3 * kWidth, 0.0));
  EXPECT_EQ(numbers(all.dw), Numbers(kVocab * kWidth, 0.0));
}

TEST(HeadLoss, TakesNoTokens) {
  Workbench bench;
  const Result none = run(bench, {}, 4);

  EXPECT_EQ(numbers(none.loss)[0], 0.0);
  EXPECT_EQ(numbers(none.dw), Numbers(kVocab * kWidth, 0.0)) << "whether it is written follows from no count";
}

TEST(HeadLoss, SumsInDoubleWhateverItsInput) {
  constexpr double kSingle = 1e-6;  // 16 roundoffs of f32
  Workbench bench;
  const Result wide = run(bench, kTargets, 2), narrow = run(bench, kTargets, 2, DType::kF32);

  EXPECT_EQ(narrow.loss.dtype(), DType::kF64);
  EXPECT_EQ(narrow.dx.dtype(), DType::kF32);
  EXPECT_NEAR(numbers(narrow.loss)[0], numbers(wide.loss)[0], kSingle);
  expect_near(numbers(narrow.dx), numbers(wide.dx), kSingle);
}

TEST(HeadLoss, RefusesASeedOtherThanOne) {
  Workbench bench;
  GradientStore store(bench, {{kVocab, kWidth}});
  const ParamViews bound{{bench.random({kVocab, kWidth}, 1)}, {}, &store};
  Tape tape(bench.stream, bound);
  const Var x = tape.input(bench.random({5, kWidth}, 2), {});
  const Var loss = loss_of(bench, tape, x, kTargets, 2);

  EXPECT_THROW(
      tape.backward(std::vector<Seed>{{loss, bench.tensor({1}, {0.5})}}, bound, WeightMode::kNow, nullptr),
      Error);
}

TEST(HeadLoss, RefusesOtherCountsOfTargetsAndEmptyChunks) {
  Workbench bench;
  const ParamViews bound{{bench.random({kVocab, kWidth}, 1)}, {}, nullptr};
  Tape tape(bench.stream, bound);
  const Var x = tape.input(bench.random({5, kWidth}, 2), {});

  EXPECT_THROW(loss_of(bench, tape, x, {1, 2, 3}, 2), Error);
  EXPECT_THROW(loss_of(bench, tape, x, kTargets, 0), Error);
}

TEST(HeadLoss, FormsNoGradientWhileEvaluating) {
  Workbench bench;
  const ParamViews bound{{bench.random({kVocab, kWidth}, 1)}, {}, nullptr};
  Tape tape(bench.stream, bound);
  const Var x = tape.input(bench.random({5, kWidth}, 2), {});

  const Var loss = loss_of(bench, tape, x, kTargets, 2);

  EXPECT_EQ(bench.peak(Owner::kActivations), bench.live(Owner::kActivations)) << "the loss alone";
  EXPECT_EQ(tape.size(), 0u);
  EXPECT_EQ(numbers(loss.value), numbers(run(bench, kTargets, 2).loss));
}

}  // namespace
}  // namespace dew::test
