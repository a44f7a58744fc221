// The ops between split tokens and whole ones: what they give, and that each derivative is the transpose.
#include "autograd/tokens.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <numeric>

#include "support/gradcheck.h"
#include "support/mpi_world.h"

namespace dew::test {
namespace {

using dew::testing::world;

MeshShape tensor_mesh() {
  MeshShape shape;
  shape[Axis::kTensor] = world().size();
  return shape;
}

Placements placed(Placement placement) {
  Placements placements;
  placements[Axis::kTensor] = placement;
  return placements;
}

class TokenOps : public ::testing::Test {
 protected:
  static constexpr std::int64_t kWidth = 3;

  /// Rows of random numbers, the same on every rank unless `key` differs.
  Numbers rows(std::uint64_t key, std::int64_t count) const { return draw(key, count * kWidth); }
  Numbers own_part(const Numbers& whole, std::int64_t tokens) const {
    const Range own = own_rows(mesh_, tokens);
    return {whole.begin() + own.begin * kWidth, whole.begin() + own.end * kWidth};
  }
  std::uint64_t key_of_rank(std::uint64_t key) const {
    return key + 100 * static_cast<std::uint64_t>(world().rank() + 1);
  }
  /// The gradient of an op's input from that of its output.
  Numbers pull(Tape& tape, const Var& in, const Var& out, const Numbers& gradient) {
    tape.backward(std::vector<Seed>{{out, bench_.tensor(out.value.shape(), gradient)}}, bound_,
                  WeightMode::kNow, nullptr);
    const Tensor result = tape.take_gradient(in);
    EXPECT_TRUE(result.defined());
    EXPECT_EQ(result.shape(), in.value.shape());
    return numbers(result);
  }
  /// Tensors of this size that come next hold NaN until somebody writes them.
  void leave_nan_in_memory(const Shape& shape) {
    const Numbers nan(static_cast<std::size_t>(shape.numel()), std::numeric_limits<double>::quiet_NaN());
    std::vector<Tensor> tensors;
    for (int i = 0; i < 4; ++i) tensors.push_back(bench_.tensor(shape, nan));
  }
  static double over_ranks(double value) {
    std::array<double, 1> sum{value};
    world().sum(sum);
    return sum[0];
  }
  static double dot(const Numbers& a, const Numbers& b) {
    EXPECT_EQ(a.size(), b.size());
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  }

  static constexpr double kRoundoff = 1e-13;  // of sums of some tens of products below one
  Workbench bench_;
  Mesh mesh_{world(), tensor_mesh(), {}};
  RematPolicy policy_;
  RopeTables tables_;
  GradientStore store_{bench_, {}};
  ParamViews bound_{{}, {}, &store_};
};

const std::int64_t kTokenCounts[] = {1, 2, 5, 7, 12};

TEST_F(TokenOps, ShareRowsInOrderEachOnce) {
  for (std::int64_t tokens : kTokenCounts) {
    const std::int64_t chunk = (tokens + world().size() - 1) / world().size();
    std::int64_t next = 0;
    for (int rank = 0; rank < world().size(); ++rank) {
      MeshCoord coord{};
      coord[static_cast<std::size_t>(Axis::kTensor)] = rank;
      const Range own = own_rows(Mesh(tensor_mesh(), coord, {}), tokens);
      EXPECT_EQ(own.begin, next);
      EXPECT_LE(own.size(), chunk);
      next = own.end;
    }
    EXPECT_EQ(next, tokens);
  }
}

// x is sharded: <x, A^T y> sums over ranks. A x is replicated and its cotangent partial: <A x, y> sums over
// ranks too.
TEST_F(TokenOps, GatherAllTokensAndScatterTheSumOfTheirGradients) {
  for (std::int64_t tokens : kTokenCounts) {
    SCOPED_TRACE(tokens);
    Tape tape(bench_.stream, bound_);
    Scope scope{tape, mesh_, policy_, tables_};
    const Numbers whole = rows(1, tokens), own = own_part(whole, tokens),
                  y = draw(key_of_rank(2), tokens * kWidth);
    const Range range = own_rows(mesh_, tokens);
    const Var x = tape.input(bench_.tensor({range.size(), kWidth}, own), placed(Placement::kSharded));

    const Var all = whole_tokens(scope, x, tokens);

    EXPECT_EQ(all.placements, placed(Placement::kReplicated));
    EXPECT_EQ(numbers(all.value), whole);
    const double forward = over_ranks(dot(whole, y)), back = over_ranks(dot(own, pull(tape, x, all, y)));
    EXPECT_NEAR(forward, back, kRoundoff * std::max(1.0, std::abs(forward)));
  }
}

// x is partial: <x, A^T y> with a replicated A^T y sums over ranks, as <A x, y> of sharded vectors does.
TEST_F(TokenOps, ScatterTheSumOfPartsAndGatherItsGradient) {
  for (std::int64_t tokens : kTokenCounts) {
    SCOPED_TRACE(tokens);
    Tape tape(bench_.stream, bound_);
    Scope scope{tape, mesh_, policy_, tables_};
    const Numbers part = draw(key_of_rank(1), tokens * kWidth), whole = rows(2, tokens),
                  y = own_part(whole, tokens);
    Numbers sum = part;
    world().sum(sum);
    const Var x = tape.input(bench_.tensor({tokens, kWidth}, part), placed(Placement::kPartial));

    const Var own = own_tokens(scope, x);

    EXPECT_EQ(own.placements, placed(Placement::kSharded));
    expect_near(numbers(own.value), own_part(sum, tokens), kRoundoff);
    const double forward = over_ranks(dot(numbers(own.value), y));
    const Numbers gradient = pull(tape, x, own, y);
    EXPECT_EQ(gradient, whole) << "every rank gets that of all tokens";
    EXPECT_NEAR(forward, over_ranks(dot(part, gradient)), kRoundoff * std::max(1.0, std::abs(forward)));
  }
}

// x is replicated and counted once; A^T y is partial, so the ranks' products with the one x add up.
TEST_F(TokenOps, CutWhatAllRanksHaveAndSendNothing) {
  for (std::int64_t tokens : kTokenCounts) {
    SCOPED_TRACE(tokens);
    Tape tape(bench_.stream, bound_);
    Scope scope{tape, mesh_, policy_, tables_};
    const Numbers whole = rows(1, tokens), y = own_part(rows(2, tokens), tokens);
    const Var x = tape.input(bench_.tensor({tokens, kWidth}, whole), {});
    const std::int64_t calls = mesh_.along(Axis::kTensor).call_count();

    const Var own = own_tokens(scope, x);

    EXPECT_EQ(own.placements, placed(Placement::kSharded));
    EXPECT_EQ(numbers(own.value), own_part(whole, tokens));
    leave_nan_in_memory({tokens, kWidth});
    const double forward = over_ranks(dot(numbers(own.value), y));
    EXPECT_NEAR(forward, over_ranks(dot(whole, pull(tape, x, own, y))),
                kRoundoff * std::max(1.0, std::abs(forward)));
    EXPECT_EQ(mesh_.along(Axis::kTensor).call_count(), calls);
  }
}

TEST_F(TokenOps, AddTheirGradientsToThoseOfOtherUses) {
  constexpr std::int64_t kTokens = 7;
  Tape tape(bench_.stream, bound_);
  Scope scope{tape, mesh_, policy_, tables_};
  const Var x = tape.input(bench_.tensor({kTokens, kWidth}, rows(1, kTokens)), {});
  const Var first = own_tokens(scope, x), second = own_tokens(scope, x);
  const Tensor y = bench_.tensor(first.value.shape(), own_part(rows(2, kTokens), kTokens));
  Numbers expected(static_cast<std::size_t>(kTokens * kWidth), 0.0);
  const Range own = own_rows(mesh_, kTokens);
  const Numbers gradient = numbers(y);
  for (std::size_t i = 0; i < gradient.size(); ++i)
    expected[static_cast<std::size_t>(own.begin * kWidth) + i] = 2 * gradient[i];

  tape.backward(std::vector<Seed>{{first, y}, {second, y}}, bound_, WeightMode::kNow, nullptr);

  EXPECT_EQ(numbers(tape.take_gradient(x)), expected);
}

TEST_F(TokenOps, CutIntegersAsWell) {
  const std::vector<std::int32_t> ids{5, 4, 3, 2, 1};
  Tape tape(bench_.stream, bound_);
  Scope scope{tape, mesh_, policy_, tables_};
  const Range own = own_rows(mesh_, 5);

  const Var cut = own_tokens(scope, {bench_.ints({5}, ids), {}, -1});

  ASSERT_EQ(cut.value.numel(), own.size());
  for (std::int64_t i = 0; i < own.size(); ++i)
    EXPECT_EQ(cut.value.data<std::int32_t>()[i], ids[static_cast<std::size_t>(own.begin + i)]);
  EXPECT_EQ(cut.slot, -1);
}

TEST_F(TokenOps, RefuseOtherPlacementsAndCounts) {
  Tape tape(bench_.stream, bound_);
  Scope scope{tape, mesh_, policy_, tables_};
  const Tensor own = bench_.random({own_rows(mesh_, 7).size(), kWidth}, 1),
               all = bench_.random({7, kWidth}, 1);

  EXPECT_THROW(whole_tokens(scope, tape.input(own, {}), 7), Error);
  EXPECT_THROW(whole_tokens(scope, tape.input(own, placed(Placement::kPartial)), 7), Error);
  EXPECT_THROW(whole_tokens(scope, tape.input(all, placed(Placement::kSharded)), 7), Error);
  EXPECT_THROW(own_tokens(scope, tape.input(own, placed(Placement::kSharded))), Error);
}

}  // namespace
}  // namespace dew::test
