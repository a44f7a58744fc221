// Attention over the sequence axis: every exchange against attention of the whole rows on one rank, in f64.
#include "autograd/sequence_attention.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "autograd/attention.h"
#include "autograd/sequence_timing.h"
#include "base/philox.h"
#include "support/mpi_world.h"
#include "support/near.h"

namespace dew {
namespace {

using test::draw;
using test::Numbers;
using test::numbers;
using test::Workbench;
using testing::world;

constexpr double kRelative = 1e-12;  // sums of some hundred terms in another order
constexpr std::array<SequenceExchange, 4> kExchanges{SequenceExchange::kAllToAll, SequenceExchange::kGather,
                                                     SequenceExchange::kBand, SequenceExchange::kRing};

class NoGradients final : public GradientSink {
 public:
  Target gradient(ParamRef) override { throw Error("attention has no parameters"); }
};

struct Case {
  std::int64_t samples, positions, keys;  ///< of a rank
  std::int64_t heads, kv_heads, width;
  bool causal;
  std::int64_t window;
  bool documents = false;
  double dropout = 0;
};

/// o, dq, dk, dv.
using Results = std::array<Numbers, 4>;

/// x [B, whole, H K] -> the positions of this rank.
Numbers part_of(const Numbers& x, std::int64_t samples, std::int64_t here, std::int64_t row) {
  const std::int64_t whole = here * world().size(), first = here * world().rank();
  Numbers part;
  for (std::int64_t b = 0; b < samples; ++b)
    for (std::int64_t i = first * row; i < (first + here) * row; ++i)
      part.push_back(x[static_cast<std::size_t>(b * whole * row + i)]);
  return part;
}

class SequenceRun {
 public:
  explicit SequenceRun(const Case& c, Device::Kind kind = Device::Kind::kCpu)
      : case_(c), bench_(kind), ranks_(world().size()), mesh_(make_mesh(kind)) {
    views_.gradients = &none_;
  }

  SequenceCall call() const {
    return {case_.samples,
            case_.positions * ranks_,
            case_.keys * ranks_,
            case_.heads,
            case_.kv_heads,
            case_.width,
            case_.causal,
            case_.window,
            ranks_};
  }

  /// Of positions from `begin` of query and key on.
  kernels::AttentionMask mask_at(std::int64_t query_begin, std::int64_t key_begin) {
    kernels::AttentionMask mask{case_.causal, case_.window, query_begin, key_begin};
    if (!case_.documents) return mask;
    const std::int64_t positions = case_.positions * ranks_;
    std::vector<std::int32_t> starts;
    for (std::int64_t b = 0; b < case_.samples; ++b)
      for (std::int64_t i = 0, start = 0; i < positions; ++i) {
        if (philox(8, static_cast<std::uint64_t>(b * positions + i), 0)[0] % 7 == 0) start = i;
        starts.push_back(static_cast<std::int32_t>(start));
      }
    mask.starts = bench_.ints({case_.samples, positions}, starts);
    return mask;
  }
  kernels::AttentionDropout dropout() const { return {{5, case_.dropout}, 3, 2}; }

  /// Attention of the whole rows, and this rank's part of it.
  Results whole() {
    const Case& c = case_;
    const std::int64_t n = ranks_, q_row = c.heads * c.width, k_row = c.kv_heads * c.width;
    const Shape q_shape{c.samples, n * c.positions, c.heads, c.width},
        k_shape{c.samples, n * c.keys, c.kv_heads, c.width};
    Tape tape(bench_.stream, views_);
    const Var q = tape.input(bench_.random(q_shape, 1), {}), k = tape.input(bench_.random(k_shape, 2), {}),
              v = tape.input(bench_.random(k_shape, 3), {});
    const Var o = attention(tape, q, k, v, mask_at(0, 0), dropout());
    const Numbers out = numbers(o.value);
    const std::array<Seed, 1> seeds{{{o, bench_.random(q_shape, 4)}}};
    tape.backward(seeds, views_, WeightMode::kNow, nullptr);
    return {part_of(out, c.samples, c.positions, q_row),
            part_of(numbers(tape.take_gradient(q)), c.samples, c.positions, q_row),
            part_of(numbers(tape.take_gradient(k)), c.samples, c.keys, k_row),
            part_of(numbers(tape.take_gradient(v)), c.samples, c.keys, k_row)};
  }

  /// The same by an exchange; `wanted` inputs are no constants.
  Results exchanged(SequenceExchange exchange, std::array<bool, 3> wanted = {true, true, true}) {
    const Case& c = case_;
    const std::int64_t q_row = c.heads * c.width, k_row = c.kv_heads * c.width, n = ranks_;
    const Placements placements = Placements::sharded({Axis::kSequence});
    Tape tape(bench_.stream, views_);
    const auto local = [&](std::uint64_t key, std::int64_t here, std::int64_t heads, std::int64_t row) {
      return bench_.tensor({c.samples, here, heads, c.width},
                           part_of(draw(key, c.samples * n * here * row), c.samples, here, row));
    };
    Vars in{{local(1, c.positions, c.heads, q_row), placements, -1},
            {local(2, c.keys, c.kv_heads, k_row), placements, -1},
            {local(3, c.keys, c.kv_heads, k_row), placements, -1}};
    for (std::size_t i = 0; i < in.size(); ++i)
      if (wanted[i]) in[i] = tape.input(in[i].value, placements);
    SequencePolicy policy;
    policy.named = exchange;
    Scope scope{tape, mesh_, keep_all_, tables_, policy};
    const std::int64_t rank = mesh_.coord(Axis::kSequence);
    const Var o =
        sequence_attention(scope, in[0], in[1], in[2], mask_at(rank * c.positions, rank * c.keys), dropout());
    Results results;
    if (o.value.raw() != nullptr) results[0] = numbers(o.value);
    const std::array<Seed, 1> seeds{{{o, local(4, c.positions, c.heads, q_row)}}};
    tape.backward(seeds, views_, WeightMode::kNow, nullptr);
    for (std::size_t i = 0; i < in.size(); ++i) {
      const Tensor gradient = tape.take_gradient(in[i]);
      if (gradient.defined() && gradient.raw() != nullptr) results[i + 1] = numbers(gradient);
    }
    return results;
  }

  Mesh& mesh() { return mesh_; }
  Stream& stream() { return bench_.stream; }

 private:
  Mesh make_mesh(Device::Kind kind) const {
    MeshShape shape;
    shape[Axis::kSequence] = ranks_;
    MeshCoord coord{};
    coord[static_cast<std::size_t>(Axis::kSequence)] = world().rank();
    return kind == Device::Kind::kMeta ? Mesh(shape, coord, {}) : Mesh(world(), shape, {});
  }

  Case case_;
  Workbench bench_;
  int ranks_;
  Mesh mesh_;
  NoGradients none_;
  ParamViews views_;
  RematPolicy keep_all_;
  RopeTables tables_;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  const std::int64_t length = 12;  // of a rank; divides by two blocks
  for (const auto& [heads, kv_heads] : {std::pair{4, 4}, std::pair{4, 2}, std::pair{6, 3}, std::pair{6, 1},
                                        std::pair{3, 1}, std::pair{12, 4}})
    for (std::int64_t samples : {1, 2})
      for (std::int64_t window : {0, 1, 5, 13, 40})
        for (const auto& [documents, dropout] : {std::pair{false, 0.0}, {true, 0.0}, {true, 0.3}})
          all.push_back({samples, length, length, heads, kv_heads, 3, true, window, documents, dropout});
  all.push_back({2, length, length, 4, 2, 3, false, 0, false, 0.3});
  for (std::int64_t keys : {12, 5}) {
    all.push_back({2, length, keys, 4, 2, 3, false, 0});
    all.push_back({1, 7, keys, 6, 3, 5, false, 0});
  }
  return all;
}

void expect_equal(const Results& actual, const Results& expected, const std::string& where) {
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (actual[i].empty()) continue;
    SCOPED_TRACE(where + ", result " + std::to_string(i));
    test::expect_near(actual[i], expected[i], kRelative);
  }
}

TEST(SequenceAttention, EqualsAttentionOfTheWholeRows) {
  std::array<int, kExchanges.size()> ran{};
  for (const Case& c : cases()) {
    SequenceRun run(c);
    const Results expected = run.whole();
    for (std::size_t e = 0; e < kExchanges.size(); ++e) {
      if (!obstacle(kExchanges[e], run.call()).empty()) continue;
      const Results actual = run.exchanged(kExchanges[e]);
      for (const Numbers& result : actual) EXPECT_FALSE(result.empty());
      expect_equal(actual, expected, std::string(name_of(kExchanges[e])) + " of " + run.call().str());
      ++ran[e];
    }
  }
  for (std::size_t e = 0; e < kExchanges.size(); ++e) EXPECT_GE(ran[e], 10) << name_of(kExchanges[e]);
}

TEST(SequenceAttention, GivesConstantsNoGradientAndTheOthersTheirs) {
  for (const Case& c : {Case{2, 12, 12, 12, 4, 3, true, 5}, Case{2, 12, 12, 12, 4, 3, true, 0}}) {
    SequenceRun run(c);
    const Results expected = run.whole();
    for (SequenceExchange exchange : kExchanges) {
      if (!obstacle(exchange, run.call()).empty()) continue;
      for (std::size_t i = 0; i < 3; ++i) {
        std::array<bool, 3> wanted{false, false, false};
        wanted[i] = true;
        const Results actual = run.exchanged(exchange, wanted);
        for (std::size_t j = 0; j < 3; ++j) EXPECT_EQ(actual[j + 1].empty(), !wanted[j]);
        expect_equal(actual, expected, std::string(name_of(exchange)));
      }
    }
  }
}

// What is planned on tensors without memory is what a real call moves and computes.
TEST(SequenceAttention, MovesAndComputesWhatADryRunCounts) {
  for (const Case& c : {Case{2, 12, 12, 12, 4, 3, true, 5}, Case{1, 12, 12, 12, 4, 3, true, 0},
                        Case{2, 12, 12, 12, 4, 3, false, 0}}) {
    for (SequenceExchange exchange : kExchanges) {
      SequenceRun real(c), dry(c, Device::Kind::kMeta);
      if (!obstacle(exchange, real.call()).empty()) continue;
      real.exchanged(exchange);
      dry.exchanged(exchange);
      const auto counted = dry.mesh().traffic(), moved = real.mesh().traffic();
      ASSERT_EQ(counted.size(), moved.size());
      for (const auto& [name, traffic] : moved)
        EXPECT_EQ(counted.at(name).bytes, traffic.bytes) << name_of(exchange);
      EXPECT_EQ(dry.stream().profile()[KernelKind::kAttention].flops,
                real.stream().profile()[KernelKind::kAttention].flops)
          << name_of(exchange);
    }
  }
}

TEST(SequenceAttention, RefusesANamedExchangeThatCannotRun) {
  SequenceRun run({1, 12, 12, 4, 2, 3, true, 0});
  EXPECT_THROW(run.exchanged(SequenceExchange::kBand), ConfigError);
}

TEST(TimeExchanges, ChoosesOneThatCanRunTheSameOnAllRanks) {
  std::set<SequenceCall> calls;
  for (const Case& c : {Case{1, 12, 12, 4, 2, 4, true, 0}, Case{1, 12, 12, 12, 4, 4, true, 5}})
    calls.insert(SequenceRun(c).call());
  SequenceCall alone = *calls.begin();
  alone.ranks = 1;
  calls.insert(alone);
  SequenceRun run({1, 12, 12, 4, 2, 4, true, 0});
  const auto chosen = time_exchanges(calls, run.mesh(), DType::kF64, run.stream());
  EXPECT_EQ(chosen.size(), calls.size() - 1);
  for (const auto& [call, exchange] : chosen) {
    EXPECT_EQ(obstacle(exchange, call), "");
    std::int64_t low = static_cast<std::int64_t>(exchange), high = low;
    world().min({&low, 1});
    world().max({&high, 1});
    EXPECT_EQ(low, high);
  }
}

}  // namespace
}  // namespace dew
