// Recomputation changes memory and time, and not one bit.
#include "autograd/remat.h"

#include <gtest/gtest.h>

#include "autograd/linear.h"
#include "autograd/norm.h"
#include "autograd/pointwise.h"
#include "support/gradcheck.h"

namespace dew::test {
namespace {

constexpr ParamRef kUp{0}, kDown{1}, kNorm{2};
const std::vector<Shape> kParams{{257, 33}, {33, 257}, {33}};
const Shape kInput{17, 33};

struct Result {
  Tensor out, d_in;
  std::vector<Tensor> d_params;
  std::int64_t kept = 0;  ///< bytes of activations between forward and backward
  std::int64_t peak = 0;
};

/// The norm and gate are site "inner", all of the branch is site "outer"; the input is used beside it too.
Var branch(Scope& scope, const Var& x) {
  const Body inner = [](Scope& s, const Vars& in) -> Vars {
    const Var h = linear(s.tape, rms_norm(s.tape, in[0], kNorm, 1e-3), kUp);
    return {swiglu(s.tape, h, h)};
  };
  const Body outer = [inner](Scope& s, const Vars& in) -> Vars {
    return {linear(s.tape, remat(s, "inner", in, inner)[0], kDown)};
  };
  return add(scope.tape, x, remat(scope, "outer", {x}, outer)[0]);
}

Result run(Workbench& bench, std::set<std::string, std::less<>> sites, WeightMode mode = WeightMode::kNow,
           DType dtype = DType::kF64) {
  GradientStore store(bench, kParams, dtype);
  ParamViews bound;
  for (const Shape& shape : kParams) bound.values.push_back(bench.random(shape, 1, dtype, Owner::kGathered));
  bound.gradients = &store;
  const Mesh mesh(MeshShape{}, MeshCoord{}, {});
  const RematPolicy policy{false, std::move(sites)};
  RopeTables tables;
  Tape tape(bench.stream, bound);
  Scope scope{tape, mesh, policy, tables};
  Result result;
  const std::int64_t before = bench.live(Owner::kActivations);
  bench.allocator.reset_peaks();

  Var in = tape.input(bench.random(kInput, 2, dtype, Owner::kActivations), {});
  Var out = branch(scope, branch(scope, in));
  result.out = bench.tensor(out.value.shape(), numbers(out.value), dtype);
  in.value = out.value = {};
  result.kept = bench.live(Owner::kActivations) - before;
  DeferredWork work;
  tape.backward(std::vector<Seed>{{out, bench.random(kInput, 3, dtype)}}, bound, mode, &work);
  work.run(bench.stream, bound);
  result.peak = bench.peak(Owner::kActivations) - before;
  result.d_in = tape.take_gradient(in);
  for (std::size_t i = 0; i < kParams.size(); ++i) result.d_params.push_back(store.of(static_cast<int>(i)));
  return result;
}

void expect_same_bits(const Result& a, const Result& b) {
  EXPECT_TRUE(same_bits(a.out, b.out));
  EXPECT_TRUE(same_bits(a.d_in, b.d_in));
  for (std::size_t i = 0; i < kParams.size(); ++i) EXPECT_TRUE(same_bits(a.d_params[i], b.d_params[i])) << i;
}

TEST(Remat, GivesTheSameBitsFromLessMemory) {
  for (DType dtype : {DType::kF64, DType::kF32}) {
    Workbench bench;
    const Result whole = run(bench, {}, WeightMode::kNow, dtype);
    for (const std::set<std::string, std::less<>>& sites :
         {std::set<std::string, std::less<>>{"inner"}, {"outer"}, {"inner", "outer"}}) {
      SCOPED_TRACE(*sites.begin() + (sites.size() > 1 ? " and outer" : ""));
      const Result again = run(bench, sites, WeightMode::kNow, dtype);
      expect_same_bits(again, whole);
      EXPECT_LT(again.kept, whole.kept);
      EXPECT_LT(again.peak, whole.peak);
    }
  }
}

TEST(Remat, KeepsLessWhereMoreIsDropped) {
  Workbench bench;

  const std::int64_t inner = run(bench, {"inner"}).kept, outer = run(bench, {"outer"}).kept;

  EXPECT_LT(outer, inner);
  EXPECT_EQ(run(bench, {"inner", "outer"}).kept, outer);
  EXPECT_LT(outer, 3 * Shape(kInput).numel() * 8) << "the two inputs of the branches, and no more";
}

TEST(Remat, GivesTheSameBitsWithDeferredWeights) {
  Workbench bench;

  expect_same_bits(run(bench, {"inner"}, WeightMode::kDefer), run(bench, {}, WeightMode::kDefer));
}

TEST(Remat, IsPlainCallForSitesThatStay) {
  Workbench bench;
  const Result whole = run(bench, {}), other = run(bench, {"elsewhere"});

  expect_same_bits(other, whole);
  EXPECT_EQ(other.kept, whole.kept);
}

TEST(Remat, HasTheGradientsOfItsDifferencesWithSeveralInputsAndOutputs) {
  check_gradients(
      {{{3, 5}, {3, 5}}, {{5, 5}, {5}}, [](Workbench&, Tape& tape, const Vars& v) -> Vars {
         const Mesh mesh(MeshShape{}, MeshCoord{}, {});
         const RematPolicy policy{false, {"pair"}};
         RopeTables tables;
         Scope scope{tape, mesh, policy, tables};
         return remat(scope, "pair", {v[0], v[1], v[0]}, [](Scope& s, const Vars& in) -> Vars {
           const Var h = rms_norm(s.tape, in[0], ParamRef{1}, 1e-2);
           return {linear(s.tape, add(s.tape, h, in[1]), ParamRef{0}), swiglu(s.tape, in[2], in[1])};
         });
       }});
}

TEST(Remat, RunsItsBodyOnceForwardSavingNothingAndOnceBack) {
  Workbench bench;
  GradientStore store(bench, {});
  const ParamViews bound{{}, {}, &store};
  const Mesh mesh(MeshShape{}, MeshCoord{}, {});
  const RematPolicy policy{false, {"site"}};
  RopeTables tables;
  Tape tape(bench.stream, bound);
  Scope scope{tape, mesh, policy, tables};
  std::vector<bool> saves;  // of each run of the body
  const Vars in{tape.input(bench.random({3}, 1), {})};
  const Vars out = remat(scope, "site", in, [saves = &saves](Scope& s, const Vars& v) -> Vars {
    saves->push_back(s.tape.differentiates());
    return {add(s.tape, v[0], v[0])};
  });
  EXPECT_EQ(saves, std::vector<bool>{false});
  EXPECT_EQ(tape.size(), 1u);

  tape.backward(std::vector<Seed>{{out[0], bench.random({3}, 2)}}, bound, WeightMode::kNow, nullptr);

  EXPECT_EQ(saves, (std::vector<bool>{false, true}));
}

TEST(Remat, DoesNotRunAgainWhatTheLossDoesNotUse) {
  Workbench bench;
  GradientStore store(bench, {{33}});
  const ParamViews bound{{bench.random({33}, 1)}, {}, &store};
  const Mesh mesh(MeshShape{}, MeshCoord{}, {});
  const RematPolicy policy{false, {"site"}};
  RopeTables tables;
  Tape tape(bench.stream, bound);
  Scope scope{tape, mesh, policy, tables};
  const Var x = tape.input(bench.random(kInput, 1), {});
  remat(scope, "site", {x},
        [](Scope& s, const Vars& in) -> Vars { return {rms_norm(s.tape, in[0], ParamRef{0}, 1)}; });

  tape.backward(std::vector<Seed>{{x, bench.random(kInput, 2)}}, bound, WeightMode::kNow, nullptr);

  EXPECT_FALSE(store.of(0).defined());
}

TEST(Remat, LeavesConstantsWithoutGradients) {
  Workbench bench;
  GradientStore store(bench, {{5, 33}});
  const ParamViews bound{{bench.random({5, 33}, 1)}, {}, &store};
  const Mesh mesh(MeshShape{}, MeshCoord{}, {});
  const RematPolicy policy{false, {"site"}};
  RopeTables tables;
  Tape tape(bench.stream, bound);
  Scope scope{tape, mesh, policy, tables};
  const Var constant{bench.random(kInput, 1), {}, -1};
  const Vars out = remat(scope, "site", {constant}, [](Scope& s, const Vars& in) -> Vars {
    return {linear(s.tape, in[0], ParamRef{0})};
  });

  tape.backward(std::vector<Seed>{{out[0], bench.random({17, 5}, 2)}}, bound, WeightMode::kNow, nullptr);

  EXPECT_TRUE(store.of(0).defined());
}

TEST(Remat, RefusesOutputsPlacedDifferently) {
  Workbench bench;
  GradientStore store(bench, {});
  const ParamViews bound{{}, {}, &store};
  const Mesh mesh(MeshShape{}, MeshCoord{}, {});
  const RematPolicy policy{false, {"site"}};
  RopeTables tables;
  Tape tape(bench.stream, bound);
  Scope scope{tape, mesh, policy, tables};
  const Var a = tape.input(bench.random({3}, 1), {});
  const Var b = tape.input(bench.random({3}, 1), Placements::sharded({Axis::kFsdp}));

  EXPECT_THROW(remat(scope, "site", {a, b}, [](Scope&, const Vars& in) { return in; }), Error);
}

}  // namespace
}  // namespace dew::test
