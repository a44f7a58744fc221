// Sums over ranks are part of a value's type: what would count a rank twice, or bend a partial sum, does not
// run.
#include "autograd/placement.h"

#include <gtest/gtest.h>

#include "autograd/attention.h"
#include "autograd/embedding.h"
#include "autograd/linear.h"
#include "autograd/loss.h"
#include "autograd/norm.h"
#include "autograd/pointwise.h"
#include "autograd/remat.h"
#include "autograd/rope.h"
#include "autograd/select_heads.h"
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
  EXPECT_EQ(rope(tape_, heads, tables.get(bench_.stream, 0, 3, 4, {10}, DType::kF64)).placements, p);
}

TEST_F(PlacedOps, MakeTheLossOfShardedTokensPartial) {
  const Var x = value({3, 4}, Placements::sharded({Axis::kReplica, Axis::kSequence}));
  const Var loss = head_loss(scope_, x, ParamRef{1}, bench_.ints({3}, {0, 1, 2}), 1, 2);

  EXPECT_EQ(loss.placements.axes_that_are(Placement::kPartial), (AxisSet{Axis::kReplica, Axis::kSequence}));
  EXPECT_THROW(add(tape_, loss, value({1}, {})), Error);
}

/// Weights of which tensor splits dim 0, dim 1, and nothing: the halves of [6, 8] and [4, 8], and [6, 4]
/// whole.
class SplitOps : public testing::Test {
 protected:
  static constexpr ParamRef kColumns{0}, kRows{1}, kWhole{2};

  Var value(const Shape& shape, const Placements& placements) {
    return tape_.input(bench_.random(shape, 1), placements);
  }

  const Placements sharded_ = Placements::sharded({Axis::kFsdp, Axis::kTensor}),
                   whole_ = Placements::sharded({Axis::kFsdp});
  Workbench bench_;
  std::vector<ParamPart> parts_{{{{6, 4}, {3, 0}, {3, 4}}, {{Axis::kTensor}, {}}},
                                {{{4, 8}, {0, 4}, {4, 4}}, {{}, {Axis::kTensor}}},
                                {{{6, 4}, {0, 0}, {6, 4}}, {{}, {}}}};
  ParamViews bound_{
      {bench_.random({3, 4}, 2), bench_.random({4, 4}, 3), bench_.random({6, 4}, 4)}, parts_, nullptr};
  Tape tape_{bench_.stream, bound_};
  LoneRank lone_;
  Scope scope_ = lone_.scope(tape_);
};

TEST_F(SplitOps, KnowTheirPartOfAParameter) {
  EXPECT_EQ(tape_.split_of(kColumns, 0), AxisSet{Axis::kTensor});
  EXPECT_EQ(tape_.split_of(kColumns, 1), AxisSet{});
  EXPECT_EQ(tape_.offset_of(kColumns, 0), 3);
  EXPECT_EQ(tape_.global_of(kColumns, 0), 6);
  EXPECT_EQ(tape_.global_of(kRows, 1), 8);
}

TEST_F(SplitOps, TurnReplicatedValuesIntoShardedAndTheseIntoPartialOnes) {
  Placements sum = whole_;
  sum[Axis::kTensor] = Placement::kPartial;

  EXPECT_EQ(linear(tape_, value({2, 4}, whole_), kColumns).placements, sharded_);
  EXPECT_EQ(linear(tape_, value({2, 4}, sharded_), kRows).placements, sum);
  EXPECT_EQ(linear(tape_, value({2, 4}, sharded_), kWhole).placements, sharded_);
  EXPECT_EQ(linear(tape_, value({2, 4}, whole_), kWhole).placements, whole_);
  EXPECT_THROW(linear(tape_, value({2, 4}, sharded_), kColumns), Error) << "the tokens are not all here";
  EXPECT_THROW(linear(tape_, value({2, 4}, sum), kColumns), Error);
  EXPECT_THROW(linear(tape_, value({2, 4}, whole_), kRows), Error) << "every rank would count the whole";
  EXPECT_THROW(linear(tape_, value({2, 4}, sum), kRows), Error);
}

TEST_F(SplitOps, LookUpPartsOfTheVocabularyForTokensThatAllRanksHave) {
  const Tensor tokens = bench_.ints({2}, {5, 0}), outside = bench_.ints({1}, {6});
  const Var y = embedding(tape_, tokens, whole_, kColumns);

  EXPECT_EQ(y.placements[Axis::kTensor], Placement::kPartial);
  const Numbers row = numbers(y.value), table = numbers(bound_.values[0]);
  EXPECT_EQ(Numbers(row.begin(), row.begin() + 4), Numbers(table.begin() + 8, table.end()))
      << "token 5 is row 2";
  EXPECT_EQ(Numbers(row.begin() + 4, row.end()), Numbers(4, 0.0)) << "token 0 is another rank's";
  EXPECT_THROW(embedding(tape_, tokens, sharded_, kColumns), Error);
  EXPECT_THROW(embedding(tape_, outside, whole_, kColumns), Error);
  EXPECT_EQ(embedding(tape_, tokens, sharded_, kWhole).placements, sharded_);
}

TEST_F(SplitOps, NeedAllTokensForPartsOfTheVocabularyInTheHead) {
  EXPECT_THROW(head_loss(scope_, value({1, 4}, sharded_), kColumns, bench_.ints({1}, {0}), 1, 2), Error);
  const Var loss = head_loss(scope_, value({1, 4}, sharded_), kWhole, bench_.ints({1}, {0}), 1, 2);
  EXPECT_EQ(loss.placements[Axis::kTensor], Placement::kPartial);
}

TEST_F(SplitOps, ChooseHeadsOfValuesThatAllRanksHave) {
  const AxisSet tensor{Axis::kTensor};

  EXPECT_EQ(select_heads(tape_, value({1, 2, 3, 4}, whole_), {1}, tensor).placements, sharded_);
  EXPECT_THROW(select_heads(tape_, value({1, 2, 3, 4}, sharded_), {1}, tensor), Error);
  EXPECT_THROW(select_heads(tape_, value({1, 2, 3, 4}, whole_), {3}, tensor), Error);
  EXPECT_THROW(select_heads(tape_, value({1, 2, 3, 4}, whole_), {-1}, tensor), Error);
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
