// Sums over ranks are part of a value's type: what would count a rank twice, or bend a partial sum, does not
// run.
#include "autograd/placement.h"

#include <gtest/gtest.h>

#include "autograd/attention.h"
#include "autograd/linear.h"
#include "autograd/loss.h"
#include "autograd/norm.h"
#include "autograd/pointwise.h"
#include "autograd/remat.h"
#include "autograd/rope.h"
#include "support/gradcheck.h"
#include "support/lone_rank.h"

namespace dew::test {
namespace {

constexpr ParamRef kWeight{0};

Placements partial(Axis axis) {
  Placements placements;
  placements[axis] = Placement::kPartial;
  return placements;
}

class PlacedOps : public testing::Test {
 protected:
  Var value(const Shape& shape, const Placements& placements) {
    return tape_.input(bench_.random(shape, 1), placements);
  }

  Workbench bench_;
  ParamViews bound_{{bench_.random({4}, 2), bench_.random({6, 4}, 3)}, {}, nullptr};
  Tape tape_{bench_.stream, bound_};
  LoneRank lone_;
  Scope scope_ = lone_.scope(tape_);
};

TEST(Placements, SayEveryAxisThatIsNotReplicated) {
  Placements placements = Placements::sharded({Axis::kReplica, Axis::kFsdp});

  EXPECT_EQ(Placements().str(), "replicated");
  EXPECT_EQ(placements.str(), "sharded(replica x fsdp)");
  placements[Axis::kTensor] = Placement::kPartial;
  EXPECT_EQ(placements.str(), "sharded(replica x fsdp) partial(tensor)");
  EXPECT_TRUE(placements.any_partial());
  EXPECT_EQ(placements.axes_that_are(Placement::kSharded), (AxisSet{Axis::kReplica, Axis::kFsdp}));
}

TEST(Placements, TurnShardsIntoPartialSums) {
  Placements placements = Placements::sharded({Axis::kFsdp});
  placements[Axis::kTensor] = Placement::kPartial;

  const Placements sum = placements.summed();

  EXPECT_EQ(sum.axes_that_are(Placement::kPartial), (AxisSet{Axis::kFsdp, Axis::kTensor}));
  EXPECT_TRUE(sum.axes_that_are(Placement::kSharded).empty());
  EXPECT_EQ(sum[Axis::kReplica], Placement::kReplicated);
  EXPECT_EQ(Placements().summed(), Placements());
}

TEST_F(PlacedOps, RefuseToAddValuesPlacedDifferently) {
  const Placements sharded = Placements::sharded({Axis::kFsdp});
  const Var whole = value({3, 4}, {}), part = value({3, 4}, sharded),
            sum = value({3, 4}, partial(Axis::kFsdp));

  EXPECT_THROW(add(tape_, whole, part), Error);
  EXPECT_THROW(add(tape_, sum, part), Error);
  EXPECT_THROW(add(tape_, sum, whole), Error) << "the reduction would count the whole value on every rank";
  EXPECT_THROW(add(tape_, sum, value({3, 4}, partial(Axis::kTensor))), Error);
  EXPECT_EQ(add(tape_, part, part).placements, sharded);
  EXPECT_EQ(add(tape_, sum, sum).placements, partial(Axis::kFsdp)) << "a sum of partial sums is one";
}

TEST_F(PlacedOps, RefuseNonlinearFunctionsOfPartialSums) {
  const Placements p = partial(Axis::kTensor);
  const Var x = value({3, 4}, p), whole = value({3, 4}, {});
  const Var heads = value({1, 3, 2, 4}, p), whole_heads = value({1, 3, 2, 4}, {});

  EXPECT_THROW(rms_norm(tape_, x, kWeight, 1e-5), Error);
  EXPECT_THROW(swiglu(tape_, x, x), Error);
  EXPECT_THROW(attention(tape_, heads, heads, heads, {}), Error);
  EXPECT_THROW(head_loss(scope_, x, ParamRef{1}, bench_.ints({3}, {0, 1, 2}), 1, 2), Error);
  EXPECT_EQ(rms_norm(tape_, whole, kWeight, 1e-5).placements, Placements());
  EXPECT_EQ(attention(tape_, whole_heads, whole_heads, whole_heads, {}).placements, Placements());
}

TEST_F(PlacedOps, RefuseInputsPlacedDifferently) {
  const Placements sharded = Placements::sharded({Axis::kReplica});

  EXPECT_THROW(swiglu(tape_, value({3, 4}, {}), value({3, 4}, sharded)), Error);
  const Var a = value({1, 3, 2, 4}, {}), b = value({1, 3, 2, 4}, sharded);
  EXPECT_THROW(attention(tape_, a, b, b, {}), Error);
  EXPECT_THROW(attention(tape_, a, a, b, {}), Error);
}

TEST_F(PlacedOps, LetLinearMapsOfPartialSumsThrough) {
  const Placements p = partial(Axis::kTensor);
  const Var x = value({3, 4}, p), heads = value({1, 3, 1, 4}, p);
  RopeTables tables;

  EXPECT_EQ(linear(tape_, x, ParamRef{1}).placements, p);
  EXPECT_EQ(reshape(tape_, x, {12}).placements, p);
  EXPECT_EQ(rope(tape_, heads, tables.get(bench_.stream, 0, 3, 4, 10, DType::kF64)).placements, p);
}

TEST_F(PlacedOps, MakeTheLossOfShardedTokensPartial) {
  const Var x = value({3, 4}, Placements::sharded({Axis::kReplica, Axis::kSequence}));
  const Var loss = head_loss(scope_, x, ParamRef{1}, bench_.ints({3}, {0, 1, 2}), 1, 2);

  EXPECT_EQ(loss.placements.axes_that_are(Placement::kPartial), (AxisSet{Axis::kReplica, Axis::kSequence}));
  EXPECT_THROW(add(tape_, loss, value({1}, {})), Error);
}

// A planted fault: a sum over tensor is taken, and what follows takes it once more.
TEST_F(PlacedOps, DoNotRunASumTakenTwice) {
  const Var once = linear(tape_, value({3, 4}, Placements::sharded({Axis::kTensor})), ParamRef{1});
  const Var reduced = tape_.record("sum over tensor", {once}, once.value, {}, {});
  const Var twice = tape_.record("sum of a sum", {reduced}, reduced.value, partial(Axis::kTensor), {});

  EXPECT_THROW(add(tape_, twice, reduced), Error);
  EXPECT_THROW(swiglu(tape_, twice, twice), Error);
}

}  // namespace
}  // namespace dew::test
