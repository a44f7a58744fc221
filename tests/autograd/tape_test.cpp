// What the tape keeps, when it frees it, and which gradients it gives.
#include "autograd/tape.h"

#include <gtest/gtest.h>

#include "autograd/linear.h"
#include "autograd/norm.h"
#include "autograd/pointwise.h"
#include "kernels/pointwise.h"
#include "support/gradcheck.h"

namespace dew::test {
namespace {

constexpr ParamRef kFirst{0}, kSecond{1};
const Shape kSquare{17, 33};

/// Three squares chained: every op saves its input.
struct Chain {
  Workbench bench;
  GradientStore store{bench, {{33, 33}, {33, 33}, {33}}};
  ParamViews bound;
  Tape tape{bench.stream, bound};
  Var in;

  Chain() {
    for (const Shape& shape : {Shape{33, 33}, Shape{33, 33}, Shape{33}})
      bound.values.push_back(bench.random(shape, 7, DType::kF64, Owner::kGathered));
    bound.gradients = &store;
    in = tape.input(bench.random(kSquare, 1, DType::kF64, Owner::kActivations), {});
  }
  Var forward() {
    const Var a = linear(tape, in, kFirst);
    const Var b = rms_norm(tape, a, ParamRef{2}, 1e-3);
    return linear(tape, swiglu(tape, b, a), kSecond);
  }
  std::vector<Seed> seeds(const Var& out) { return {{out, bench.random(out.value.shape(), 2)}}; }
  std::vector<Tensor> gradients() { return {store.of(0), store.of(1), store.of(2), tape.take_gradient(in)}; }
};

TEST(Tape, FreesWhatEachOpSavedDuringTheBackward) {
  Workbench bench;
  GradientStore store(bench, {});
  const ParamViews bound{{}, {}, &store};
  Tape tape(bench.stream, bound);
  std::vector<std::int64_t> live;  // seen by each op's backward
  constexpr int kOps = 5;
  Var x = tape.input(bench.random({257}, 1, DType::kF64, Owner::kActivations), {});
  const std::int64_t one = bench.live(Owner::kActivations);
  for (int i = 0; i < kOps; ++i) {
    const Tensor saved = tape.empty({257}, DType::kF64);
    x = tape.record("save", {x}, tape.empty({257}, DType::kF64), {}, [&bench, &live, saved](Backward& g) {
      live.push_back(bench.live(Owner::kActivations));
      g.pass(0, g.out());
    });
  }
  std::vector<Seed> seeds{{x, bench.random({257}, 2)}};
  seeds[0].output.value = x.value = {};

  tape.backward(seeds, bound, WeightMode::kNow, nullptr);

  std::vector<std::int64_t> expected;
  for (int i = kOps; i > 0; --i) expected.push_back(i * one);
  EXPECT_EQ(live, expected);
}

TEST(Tape, KeepsNoActivationAfterTheBackward) {
  Chain chain;
  std::vector<Seed> seeds = chain.seeds(chain.forward());
  seeds[0].output.value = {};
  chain.in.value = {};
  ASSERT_GT(chain.bench.live(Owner::kActivations), 0);

  chain.tape.backward(seeds, chain.bound, WeightMode::kNow, nullptr);

  EXPECT_EQ(chain.tape.size(), 0u);
  ASSERT_TRUE(chain.tape.take_gradient(chain.in).defined());
  EXPECT_EQ(chain.bench.live(Owner::kActivations), 0);
}

TEST(Tape, KeepsNoParameterAlive) {
  Chain chain;
  std::vector<Seed> seeds = chain.seeds(chain.forward());
  std::vector<Tensor> again;
  for (const Tensor& value : chain.bound.values)
    again.push_back(chain.bench.tensor(value.shape(), numbers(value)));

  chain.bound.values.clear();

  EXPECT_EQ(chain.bench.live(Owner::kGathered), 0) << "an op holds a weight";
  ParamViews rebound{again, {}, &chain.store};
  chain.tape.backward(seeds, rebound, WeightMode::kNow, nullptr);
  Chain whole;
  whole.tape.backward(whole.seeds(whole.forward()), whole.bound, WeightMode::kNow, nullptr);
  const std::vector<Tensor> a = chain.gradients(), b = whole.gradients();
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(same_bits(a[i], b[i])) << i;
}

TEST(Tape, RefusesAParameterThatIsNotBound) {
  Chain chain;

  EXPECT_THROW(linear(chain.tape, chain.in, ParamRef{3}), Error);
  EXPECT_THROW(linear(chain.tape, chain.in, ParamRef{-1}), Error);
  chain.bound.values[0] = {};
  EXPECT_THROW(linear(chain.tape, chain.in, kFirst), Error);
}

TEST(DeferredWork, GivesTheSameBitsAsAtOnce) {
  Chain now, later;
  now.tape.backward(now.seeds(now.forward()), now.bound, WeightMode::kNow, nullptr);
  const std::vector<Tensor> expected = now.gradients();
  DeferredWork work;
  later.tape.backward(later.seeds(later.forward()), later.bound, WeightMode::kDefer, &work);
  EXPECT_FALSE(later.store.of(0).defined()) << "weight gradients wait";
  EXPECT_TRUE(later.store.of(2).defined()) << "those of norms do not";
  EXPECT_FALSE(work.empty());

  later.bound.values.clear();  // only the buffers to write to are needed
  work.run(later.bench.stream, later.bound);

  EXPECT_TRUE(work.empty());
  const std::vector<Tensor> actual = later.gradients();
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_TRUE(same_bits(actual[i], expected[i])) << i;
}

TEST(DeferredWork, HoldsWhatItNeedsUntilItRan) {
  Chain chain;
  std::vector<Seed> seeds = chain.seeds(chain.forward());
  seeds[0].output.value = {};
  chain.in.value = {};
  const std::int64_t square = 17 * 33 * 8 / 512 * 512;  // at least
  DeferredWork work;

  chain.tape.backward(seeds, chain.bound, WeightMode::kDefer, &work);

  chain.tape.take_gradient(chain.in);
  EXPECT_GE(chain.bench.live(Owner::kActivations), 3 * square)
      << "two saved inputs and an inner output gradient";
  work.run(chain.bench.stream, chain.bound);
  EXPECT_EQ(chain.bench.live(Owner::kActivations), 0);
}

TEST(DeferredWork, FreesEachWorkWhenItRan) {
  Workbench bench;
  GradientStore store(bench, {});
  const ParamViews bound{{}, {}, &store};
  DeferredWork work;
  std::vector<std::int64_t> live;
  constexpr int kWorks = 3;
  for (int i = 0; i < kWorks; ++i) {
    const Tensor saved = Tensor::empty({257}, DType::kF64, bench.stream, Owner::kActivations);
    work.add([&bench, &live, saved](WeightBackward&) { live.push_back(bench.live(Owner::kActivations)); },
             {saved});
  }
  const std::int64_t one = bench.live(Owner::kActivations) / kWorks;

  work.run(bench.stream, bound);

  EXPECT_EQ(live, (std::vector<std::int64_t>{3 * one, 2 * one, one}));
}

TEST(DeferredWork, MustBeGivenForDeferring) {
  Chain chain;
  const std::vector<Seed> seeds = chain.seeds(chain.forward());

  EXPECT_THROW(chain.tape.backward(seeds, chain.bound, WeightMode::kDefer, nullptr), Error);
}

TEST(Tape, GivesAnUnreachedOutputAZeroGradient) {
  check_gradients(
      {{{3, 5}}, {}, [](Workbench& bench, Tape& tape, const Vars& v) -> Vars {
         const Tensor twice = tape.empty({3, 5}, DType::kF64), copied = tape.empty({3, 5}, DType::kF64);
         kernels::add(bench.stream, v[0].value, v[0].value, twice);
         kernels::add(bench.stream, v[0].value, twice, copied);
         const Vars outs = tape.record("2x, 3x", v, {twice, copied}, Placements{}, [](Backward& g) {
           const Target into = g.in(0);
           EXPECT_FALSE(into.accumulate);
           kernels::add(g.stream(), g.out(0), g.out(0), into.into);
           for (int i = 0; i < 3; ++i) kernels::add(g.stream(), into.into, g.out(1), into.into);
         });
         return {outs[0]};
       }});
}

TEST(Tape, LeavesOpsThatTheLossDoesNotUseWithoutGradients) {
  Chain chain;
  const Var used = linear(chain.tape, chain.in, kFirst);
  const Var other = chain.tape.input(chain.bench.random(kSquare, 3), {});
  const Var unused = linear(chain.tape, rms_norm(chain.tape, other, ParamRef{2}, 1e-3), kSecond);
  ASSERT_EQ(chain.tape.size(), 3u);

  chain.tape.backward(chain.seeds(used), chain.bound, WeightMode::kNow, nullptr);

  EXPECT_TRUE(chain.store.of(0).defined());
  EXPECT_FALSE(chain.store.of(1).defined());
  EXPECT_FALSE(chain.store.of(2).defined());
  EXPECT_FALSE(chain.tape.take_gradient(other).defined());
  EXPECT_TRUE(chain.tape.take_gradient(chain.in).defined());
}

TEST(Tape, AddsUpSeedsOfOneOutput) {
  Workbench bench;
  GradientStore store(bench, {});
  const ParamViews bound{{}, {}, &store};
  Tape tape(bench.stream, bound);
  const Var x = tape.input(bench.tensor({2}, {1, 2}), {});
  const Tensor seed = bench.tensor({2}, {10, 20});

  tape.backward(std::vector<Seed>{{x, seed}, {x, seed}}, bound, WeightMode::kNow, nullptr);

  EXPECT_EQ(numbers(tape.take_gradient(x)), (Numbers{20, 40}));
  EXPECT_EQ(numbers(seed), (Numbers{10, 20})) << "the seed belongs to the caller";
}

TEST(Tape, RefusesASeedOfAnotherSizeOrType) {
  Workbench bench;
  GradientStore store(bench, {});
  const ParamViews bound{{}, {}, &store};
  Tape tape(bench.stream, bound);
  const Var x = tape.input(bench.tensor({2}, {1, 2}), {});
  const auto run = [&](const Tensor& seed) {
    tape.backward(std::vector<Seed>{{x, seed}}, bound, WeightMode::kNow, nullptr);
  };

  EXPECT_THROW(run(bench.tensor({3}, {1, 2, 3})), Error);
  EXPECT_THROW(run(bench.tensor({2}, {1, 2}, DType::kF32)), Error);
}

TEST(Tape, RecordsNothingWhileEvaluating) {
  Chain chain;
  chain.bound.gradients = nullptr;
  chain.in = chain.tape.input(chain.in.value, {});
  const std::int64_t before = chain.bench.live(Owner::kActivations);

  {
    const Var out = chain.forward();
    EXPECT_EQ(out.slot, -1);
    EXPECT_EQ(chain.in.slot, -1);
    EXPECT_EQ(chain.tape.size(), 0u);
    EXPECT_EQ(chain.bench.live(Owner::kActivations), 2 * before) << "its input and its output alone";
  }
  EXPECT_THROW(chain.tape.backward({}, chain.bound, WeightMode::kNow, nullptr), Error);
}

TEST(Tape, PrintsAnOpALine) {
  Chain chain;
  chain.forward();

  EXPECT_EQ(chain.tape.str(),
            "linear %0 -> %1[17, 33]\n"
            "rms_norm %1 -> %2[17, 33]\n"
            "swiglu %2 %1 -> %3[17, 33]\n"
            "linear %3 -> %4[17, 33]\n");
}

TEST(Backward, RefusesAGradientThatNobodyWants) {
  Chain chain;
  const Var constant{chain.bench.random(kSquare, 5), {}, -1};
  const Var out = chain.tape.record("careless", {constant}, constant.value, {},
                                    [](Backward& g) { static_cast<void>(g.in(0)); });

  EXPECT_THROW(chain.tape.backward(chain.seeds(out), chain.bound, WeightMode::kNow, nullptr), Error);
}

}  // namespace
}  // namespace dew::test
