// The whole decoder in f64: its loss against plain loops, its gradients against differences, leaf by leaf.
#include <gtest/gtest.h>

#include <numeric>

#include "model/decoder_reference.h"
#include "support/tiny_models.h"

namespace dew::test {
namespace {

struct DecoderCase {
  std::string name, keys;
  ReferenceDecoder reference;
  std::int64_t samples, length, first_position;
};

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for this name
void PrintTo(const DecoderCase& c, std::ostream* out) {
  *out << c.name;
}

// layers, width, heads, kv_heads, head_width, mlp, vocab, windows, theta, eps, tied
const DecoderCase kCases[] = {
    {"Separate", "layers: 1, width: 8, heads: 2, mlp: 6, vocab: 7", {1, 8, 2, 2, 4, 6, 7, {0}}, 2, 5, 0},
    {"Tied",
     "layers: 2, width: 8, heads: 2, mlp: 6, vocab: 7, tied: true",
     {2, 8, 2, 2, 4, 6, 7, {0, 0}, 10000, 1e-5, true},
     2,
     5,
     0},
    {"GroupedHeads",
     "layers: 2, width: 12, heads: 6, kv_heads: 2, mlp: 5, vocab: 11, norm_eps: 0.01",
     {2, 12, 6, 2, 2, 5, 11, {0, 0}, 10000, 0.01},
     1,
     6,
     0},
    {"OneWindow",
     "layers: 2, width: 8, heads: 2, kv_heads: 1, mlp: 6, vocab: 7, window: 3",
     {2, 8, 2, 1, 4, 6, 7, {3, 3}},
     2,
     9,
     0},
    {"WindowsPerLayer",
     "layers: 3, width: 8, heads: 2, mlp: 6, vocab: 7, window: [2, 0], rope_theta: 50",
     {3, 8, 2, 2, 4, 6, 7, {2, 0, 2}, 50},
     1,
     9,
     5},
    {"OddSizes",
     "layers: 2, width: 33, heads: 3, head_width: 10, mlp: 17, vocab: 257, head_chunk: 7, tied: true",
     {2, 33, 3, 3, 10, 17, 257, {0, 0}, 10000, 1e-5, true},
     3,
     11,
     0},
};

class Decoder : public testing::TestWithParam<DecoderCase> {};
INSTANTIATE_TEST_SUITE_P(Cases, Decoder, testing::ValuesIn(kCases),
                         [](const auto& test) { return test.param.name; });

std::vector<std::int32_t> ints(const Tensor& t) {
  const std::int32_t* p = t.data<std::int32_t>();
  return {p, p + t.numel()};
}

TEST_P(Decoder, HasTheLossOfPlainLoops) {
  constexpr double kRelative = 1e-12;  // some thousand roundoffs of 1.1e-16, in another order
  const DecoderCase& c = GetParam();
  Workbench bench;
  const Model model = decoder_of(c.keys);
  const auto vocab = static_cast<std::int64_t>(c.reference.vocab);
  const Microbatch microbatch = microbatch_of(bench, c.samples, c.length, vocab, c.first_position);
  ChainRun run(bench, model);
  ReferenceDecoder reference = c.reference;
  for (const auto& [name, tensor] : run.weights) reference.weights[name] = numbers(tensor);

  const double expected =
      reference.loss(ints(microbatch.batch.tokens), ints(microbatch.batch.targets),
                     static_cast<std::size_t>(c.length), static_cast<std::size_t>(c.first_position));

  EXPECT_GT(expected, 0.1);
  EXPECT_NEAR(run.evaluate(microbatch), expected, kRelative * expected);
  EXPECT_NEAR(run.differentiate(microbatch), expected, kRelative * expected);
}

TEST_P(Decoder, HasTheGradientsOfItsDifferences) {
  // The difference's error is step^2 / 6 of a third derivative, and roundoff of the loss over the step: below
  // 1e-9.
  constexpr double kStep = 1e-5, kTolerance = 1e-8;
  const DecoderCase& c = GetParam();
  Workbench bench;
  const Model model = decoder_of(c.keys);
  const auto vocab = static_cast<std::int64_t>(c.reference.vocab);
  const Microbatch microbatch = microbatch_of(bench, c.samples, c.length, vocab, c.first_position);
  ChainRun run(bench, model);
  run.differentiate(microbatch);
  ASSERT_EQ(run.gradients.size(), run.weights.size());

  double whole = 0;
  const ChainRun::ByName middle = run.weights;
  const double leaves = std::sqrt(static_cast<double>(middle.size()));
  const auto move = [&](const std::string& leaf, double step) {
    for (const auto& [name, weight] : middle) {
      if (!leaf.empty() && leaf != name) continue;
      Numbers x = numbers(weight);
      const Numbers direction = draw(stream_key(9, name), weight.numel());
      const double scale =
          step / std::sqrt(static_cast<double>(weight.numel())) / (leaf.empty() ? leaves : 1);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] += scale * direction[i];
      run.weights[name] = bench.tensor(weight.shape(), x);
    }
    const double loss = run.evaluate(microbatch);
    run.weights = middle;
    return loss;
  };
  for (const auto& [name, weight] : middle) {
    const Numbers gradient = numbers(run.gradients.at(name)),
                  direction = draw(stream_key(9, name), weight.numel());
    const double along = std::inner_product(gradient.begin(), gradient.end(), direction.begin(), 0.0) /
                         std::sqrt(static_cast<double>(weight.numel()));
    EXPECT_NEAR((move(name, kStep) - move(name, -kStep)) / (2 * kStep), along, kTolerance) << name;
    EXPECT_GT(std::abs(along), 100 * kTolerance) << name << " is not really tested";
    whole += along;
  }
  EXPECT_NEAR((move("", kStep) - move("", -kStep)) / (2 * kStep), whole / leaves, kTolerance)
      << "all of them together";
}

TEST(DecoderChain, SeesRelativePositionsOnly) {
  constexpr double kRoundoff = 1e-12;  // angles of positions near 1000 carry 1e-13
  Workbench bench;
  const Model model = decoder_of("layers: 2, width: 8, heads: 2, mlp: 6, vocab: 7, window: 4");
  ChainRun run(bench, model);

  const double here = run.evaluate(microbatch_of(bench, 2, 9, 7, 0));

  EXPECT_NEAR(run.evaluate(microbatch_of(bench, 2, 9, 7, 1000)), here, kRoundoff);
}

TEST(DecoderChain, LooksAtNoLaterToken) {
  Workbench bench;
  const Model model = decoder_of("layers: 2, width: 8, heads: 2, mlp: 6, vocab: 7");
  ChainRun run(bench, model);
  Microbatch first = microbatch_of(bench, 1, 6, 7), second = first;
  first.batch.targets = second.batch.targets = bench.ints({1, 6}, {1, 2, 3, -1, -1, -1});
  first.batch.tokens = bench.ints({1, 6}, {0, 1, 2, 3, 4, 5});
  second.batch.tokens = bench.ints({1, 6}, {0, 1, 2, 6, 6, 6});

  const double expected = run.evaluate(first);

  EXPECT_EQ(run.evaluate(second), expected);
  second.batch.tokens = bench.ints({1, 6}, {0, 1, 6, 3, 4, 5});
  EXPECT_NE(run.evaluate(second), expected);
}

TEST(DecoderChain, KeepsSamplesApart) {
  constexpr double kRoundoff = 1e-14;
  Workbench bench;
  const Model model = decoder_of("layers: 2, width: 8, heads: 2, mlp: 6, vocab: 7");
  ChainRun run(bench, model);
  const auto loss_of = [&](std::int64_t samples, const std::vector<std::int32_t>& tokens) {
    Microbatch microbatch = microbatch_of(bench, samples, 3, 7);
    microbatch.batch.tokens = bench.ints({samples, 3}, tokens);
    microbatch.batch.targets = bench.ints({samples, 3}, std::vector<std::int32_t>(tokens.size(), 1));
    microbatch.loss_scale = 1;
    return run.evaluate(microbatch);
  };

  EXPECT_NEAR(loss_of(2, {0, 1, 2, 5, 6, 3}), loss_of(1, {0, 1, 2}) + loss_of(1, {5, 6, 3}), kRoundoff);
}

TEST(DecoderChain, PlacesItsLossAsASumOverTheTokensRanks) {
  Workbench bench;
  const Model model = decoder_of("layers: 1, width: 4, heads: 2, mlp: 3, vocab: 5");
  Microbatch microbatch = microbatch_of(bench, 1, 3, 5);
  microbatch.placements = Placements::sharded({Axis::kReplica, Axis::kFsdp});
  const Mesh mesh(MeshShape{}, MeshCoord{}, {});
  const RematPolicy policy;
  RopeTables tables;
  const ChainRun weights(bench, model);
  Vars values;
  for (const auto& block : model.chain) {
    ParamViews bound;
    for (const ParamSpec& spec : block->params()) bound.values.push_back(weights.weights.at(spec.name));
    Tape tape(bench.stream, bound);
    Scope scope{tape, mesh, policy, tables};
    values = block->forward(scope, microbatch, values);
    EXPECT_EQ(values.size(), 1u);
    if (block->name() == "head") break;
    EXPECT_EQ(values[0].placements, microbatch.placements) << block->name();
  }

  EXPECT_EQ(values[0].placements, microbatch.placements.summed());
}

}  // namespace
}  // namespace dew::test
