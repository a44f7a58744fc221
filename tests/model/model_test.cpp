// What a chain declares: names, shapes, initial values.
#include "model/model.h"

#include <gtest/gtest.h>

#include <set>

#include "base/philox.h"
#include "support/tiny_models.h"

namespace dew::test {
namespace {

std::map<std::string, ParamSpec> by_name(const Model& model) {
  std::map<std::string, ParamSpec> specs;
  for (const ParamSpec& spec : model.params()) specs.emplace(spec.name, spec);
  return specs;
}

TEST(DecoderParams, HaveTheirNamesAndShapesInTheOrderOfTheChain) {
  const Model model =
      decoder_of("layers: 2, width: 12, heads: 6, kv_heads: 2, head_width: 4, mlp: 5, vocab: 11");
  std::vector<std::pair<std::string, Shape>> expected{{"embed.weight", {11, 12}}};
  for (const std::string layer : {"layers.0", "layers.1"}) {
    expected.insert(expected.end(), {{layer + ".attention.norm", {12}},
                                     {layer + ".attention.wq", {24, 12}},
                                     {layer + ".attention.wk", {8, 12}},
                                     {layer + ".attention.wv", {8, 12}},
                                     {layer + ".attention.wo", {12, 24}},
                                     {layer + ".mlp.norm", {12}},
                                     {layer + ".mlp.gate", {5, 12}},
                                     {layer + ".mlp.up", {5, 12}},
                                     {layer + ".mlp.down", {12, 5}}});
  }
  expected.insert(expected.end(), {{"head.norm", {12}}, {"head.weight", {11, 12}}});

  std::vector<std::pair<std::string, Shape>> actual;
  std::int64_t count = 0;
  for (const ParamSpec& spec : model.params()) {
    actual.emplace_back(spec.name, spec.shape);
    count += spec.shape.numel();
    EXPECT_EQ(static_cast<int>(spec.axes.size()), spec.shape.dims()) << spec.name;
    EXPECT_EQ(spec.decays(), spec.shape.dims() == 2) << spec.name;
  }
  EXPECT_EQ(actual, expected);
  EXPECT_EQ(model.parameter_count(), count);
}

TEST(DecoderParams, SayWhatTheirDimsMean) {
  using Dims = std::vector<DimMeaning>;
  const Model model = decoder_of("layers: 1, width: 8, heads: 2, kv_heads: 1, mlp: 5, vocab: 11");
  const DimMeaning width(LogicalAxis::kWidth), vocab(LogicalAxis::kVocab), mlp(LogicalAxis::kMlp),
      heads(LogicalAxis::kHeads, 2), kv_heads(LogicalAxis::kKvHeads, 1);
  const auto specs = by_name(model);
  const auto axes = [&](const std::string& name) { return specs.at(name).axes; };

  EXPECT_EQ(axes("embed.weight"), (Dims{vocab, width}));
  EXPECT_EQ(axes("layers.0.attention.wq"), (Dims{heads, width}));
  EXPECT_EQ(axes("layers.0.attention.wk"), (Dims{kv_heads, width}));
  EXPECT_EQ(axes("layers.0.attention.wv"), (Dims{kv_heads, width}));
  EXPECT_EQ(axes("layers.0.attention.wo"), (Dims{width, heads}));
  EXPECT_EQ(axes("layers.0.mlp.gate"), (Dims{mlp, width}));
  EXPECT_EQ(axes("layers.0.mlp.down"), (Dims{width, mlp}));
  EXPECT_EQ(axes("head.norm"), (Dims{width}));
}

TEST(DecoderParams, CountATiedHeadOnce) {
  const Model tied = decoder_of("layers: 1, width: 8, heads: 2, mlp: 5, vocab: 11, tied: true");
  const Model separate = decoder_of("layers: 1, width: 8, heads: 2, mlp: 5, vocab: 11");

  EXPECT_EQ(by_name(tied).count("head.weight"), 0u);
  EXPECT_EQ(tied.chain.back()->params()[1].name, "embed.weight");
  EXPECT_EQ(tied.params().size(), separate.params().size() - 1);
  EXPECT_EQ(tied.parameter_count(), separate.parameter_count() - 11 * 8);
}

TEST(DecoderParams, TakeTheVocabularyOfTheDataUnlessTold) {
  EXPECT_EQ(by_name(decoder_of("width: 8, heads: 2", 300)).at("embed.weight").shape, (Shape{300, 8}));
  EXPECT_EQ(by_name(decoder_of("width: 8, heads: 2, vocab: 301", 300)).at("embed.weight").shape,
            (Shape{301, 8}));
}

TEST(DecoderParams, RoundTheHiddenWidthUp) {
  EXPECT_EQ(by_name(decoder_of("width: 64, heads: 2, vocab: 5")).at("layers.0.mlp.up").shape,
            (Shape{192, 64}));
  EXPECT_EQ(by_name(decoder_of("width: 12, heads: 2, vocab: 5")).at("layers.0.mlp.up").shape,
            (Shape{32, 12}));
}

TEST(DecoderInit, ScalesTheMapsThatEndInTheResidualStream) {
  const auto scaled = by_name(decoder_of("layers: 8, width: 8, heads: 2, vocab: 5, init_std: 0.04"));
  const auto plain =
      by_name(decoder_of("layers: 8, width: 8, heads: 2, vocab: 5, init_std: 0.04, init_residual: false"));

  for (const char* name : {"layers.3.attention.wo", "layers.7.mlp.down"}) {
    EXPECT_DOUBLE_EQ(scaled.at(name).init.stddev, 0.04 / 4) << "divided by sqrt(2 layers)";
    EXPECT_DOUBLE_EQ(plain.at(name).init.stddev, 0.04);
  }
  for (const char* name : {"embed.weight", "head.weight", "layers.3.attention.wq", "layers.3.attention.wk",
                           "layers.3.attention.wv", "layers.3.mlp.gate", "layers.3.mlp.up"})
    EXPECT_DOUBLE_EQ(scaled.at(name).init.stddev, 0.04) << name;
  for (const char* name : {"head.norm", "layers.0.attention.norm", "layers.7.mlp.norm"}) {
    EXPECT_EQ(scaled.at(name).init.stddev, 0.0) << name;
    EXPECT_EQ(scaled.at(name).init.constant, 1.0) << name;
  }
}

// Values are drawn from a key of seed and name: other names are other values, and what else is in the model
// plays no part.
TEST(DecoderInit, GivesEveryParameterItsOwnStream) {
  std::set<std::uint64_t> keys;
  const auto specs = by_name(decoder_of("layers: 100, width: 8, heads: 2, vocab: 5"));
  for (const auto& [name, spec] : specs) keys.insert(stream_key(0, "init:" + name));

  EXPECT_EQ(keys.size(), specs.size());
}

TEST(DecoderInit, DependsOnTheCountOfLayersInItsScaleAlone) {
  const auto few = by_name(decoder_of("layers: 2, width: 8, heads: 2, vocab: 5"));
  const auto many = by_name(decoder_of("layers: 18, width: 8, heads: 2, vocab: 5"));
  for (const auto& [name, spec] : few) {
    ASSERT_TRUE(many.contains(name)) << name;
    EXPECT_EQ(many.at(name).shape, spec.shape) << name;
    const bool residual = name.ends_with(".wo") || name.ends_with(".down");
    EXPECT_NEAR(many.at(name).init.stddev, spec.init.stddev / (residual ? 3 : 1), 1e-17) << name;
  }
}

TEST(DecoderChainOfBlocks, NamesItsBlocksAndEndsInTheOneThatRunsOnce) {
  const Model model = decoder_of("layers: 2, width: 8, heads: 2, vocab: 5");
  std::vector<std::string> names;
  for (const auto& block : model.chain) names.push_back(block->name());

  EXPECT_EQ(names, (std::vector<std::string>{"embed", "layers.0", "layers.1", "head"}));
  for (const auto& block : model.chain) EXPECT_EQ(block->may_rerun(), block->name() != "head");
  EXPECT_EQ(model.family, "decoder");
  EXPECT_EQ(model.summary, "decoder, 2 layers x 8, 2 heads (2 kv) x 4, mlp 32, vocab 5, separate head");
}

class DeclaringBlock final : public Block {
 public:
  DeclaringBlock(std::string name, std::vector<ParamSpec> params)
      : name_(std::move(name)), params_(std::move(params)) {}
  const std::string& name() const override { return name_; }
  std::span<const ParamSpec> params() const override { return params_; }
  Vars forward(Scope&, const Microbatch&, const Vars& in) const override { return in; }

 private:
  std::string name_;
  std::vector<ParamSpec> params_;
};

Model model_of_two(const Shape& first, const Shape& second) {
  Model model;
  const std::vector<DimMeaning> axes{LogicalAxis::kMlp, LogicalAxis::kWidth};
  model.chain.push_back(
      std::make_unique<DeclaringBlock>("a", std::vector<ParamSpec>{{"shared", first, axes, {}}}));
  model.chain.push_back(
      std::make_unique<DeclaringBlock>("b", std::vector<ParamSpec>{{"shared", second, axes, {}}}));
  return model;
}

TEST(Model, RefusesOneNameWithTwoShapes) {
  EXPECT_EQ(model_of_two({2, 3}, {2, 3}).params().size(), 1u);
  EXPECT_THROW(model_of_two({2, 3}, {3, 2}).params(), Error);
}

TEST(LogicalAxes, HaveTheNamesOfTheRules) {
  std::string names;
  for (int i = 0; i < kLogicalAxisCount; ++i)
    names += std::string(name_of(static_cast<LogicalAxis>(i))) + " ";

  EXPECT_EQ(names, "vocab positions width head_width heads kv_heads mlp ");
}

}  // namespace
}  // namespace dew::test
