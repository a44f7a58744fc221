// The keys of `model`: what they give and what is refused, by name and with what would be accepted.
#include "model/families/decoder_config.h"

#include <gtest/gtest.h>

#include "support/tiny_models.h"

namespace dew::test {
namespace {

DecoderConfig read(const std::string& keys) {
  Config config = Config::from_text("model: {" + keys + "}\n", "run.yaml");
  ConfigSection section = config.root().section({"model", "", ""});
  DecoderConfig c = read_decoder_config(section, {256, 32});
  config.throw_errors();
  return c;
}

/// The messages of a model section that is refused.
std::string refusal(const std::string& keys, std::int64_t data_vocab = 256) {
  Config config = Config::from_text("model: {" + keys + "}\n", "run.yaml");
  build_model(config.root(), {data_vocab, 32});
  try {
    config.throw_errors();
  } catch (const ConfigError& error) {
    std::string all;
    for (const std::string& message : error.messages()) all += message + "\n";
    return all;
  }
  return "nothing was refused";
}

void expect_refused(const std::string& keys, const std::string& path, const std::string& accepted) {
  const std::string message = refusal("family: decoder, " + keys);
  EXPECT_NE(message.find("model." + path), std::string::npos) << keys << ": " << message;
  EXPECT_NE(message.find(accepted), std::string::npos) << keys << ": " << message;
}

TEST(DecoderKeys, HaveTheirDefaults) {
  const DecoderConfig c = read("");

  EXPECT_TRUE(c.valid);
  EXPECT_EQ(c.layers, 2);
  EXPECT_EQ(c.width, 64);
  EXPECT_EQ(c.heads, 4);
  EXPECT_EQ(c.kv_heads, 4);
  EXPECT_EQ(c.head_width, 16);
  EXPECT_EQ(c.mlp, 192);
  EXPECT_EQ(c.vocab, 256);
  EXPECT_EQ(c.window_of(0), 0);
  EXPECT_FALSE(c.tied);
  EXPECT_TRUE(c.init_residual);
  EXPECT_EQ(c.init_std, 0.02);
  ASSERT_TRUE(c.rope.has_value());
  EXPECT_EQ(c.rope->theta, 10000.0);
  EXPECT_EQ(c.rope->scaling.original, 0);
  EXPECT_EQ(c.positions, 0);
  EXPECT_EQ(c.norm.eps, 1e-5);
  EXPECT_FALSE(c.norm.layer || c.bias || c.qk_norm);
  EXPECT_EQ(c.activation, Activation::kSwiglu);
  EXPECT_EQ(c.dropout, 0);
  EXPECT_EQ(c.head_chunk, 1024);
}

TEST(DecoderKeys, TakeTheExampleOfTheContract) {
  const DecoderConfig c = read(
      "layers: 2, width: 64, heads: 4, kv_heads: 4, head_width: 16, mlp: 256, vocab: auto, norm: rms, "
      "activation: swiglu, position: rope, rope_theta: 10000, tied: false, qk_norm: false, bias: false, "
      "window: null, init_std: 0.02, dropout: 0.0, max_positions: null");

  EXPECT_TRUE(c.valid);
  EXPECT_EQ(c.mlp, 256);
  EXPECT_EQ(c.window_of(1), 0);
}

TEST(DecoderKeys, RepeatWindowsOverTheLayers) {
  const DecoderConfig one = read("window: 7"), list = read("window: [7, 0, 3]");

  EXPECT_EQ(one.window_of(0), 7);
  EXPECT_EQ(one.window_of(5), 7);
  EXPECT_EQ(list.window_of(0), 7);
  EXPECT_EQ(list.window_of(1), 0);
  EXPECT_EQ(list.window_of(2), 3);
  EXPECT_EQ(list.window_of(3), 7);
}

TEST(DecoderKeys, RefuseHeadsThatDoNotFit) {
  expect_refused("heads: 6, width: 48, kv_heads: 4", "kv_heads", "must divide the 6 heads");
  expect_refused("heads: 2, width: 48, kv_heads: 4", "kv_heads", "must divide the 2 heads");
  expect_refused("heads: 5, width: 64", "head_width", "not 64 by 5");
  expect_refused("heads: 4, width: 12", "head_width", "3 is odd");
  expect_refused("head_width: 7", "head_width", "accepted: even");
  EXPECT_TRUE(read("heads: 5, width: 64, head_width: 16").valid);
}

TEST(DecoderKeys, RefuseAVocabularyBelowTheData) {
  expect_refused("vocab: 255", "vocab", "accepted: 256 or more");
  EXPECT_EQ(read("vocab: 256").vocab, 256);
  EXPECT_EQ(read("vocab: 300").vocab, 300);
}

TEST(DecoderKeys, LeaveDataThatCannotBeOpenedToItsOwnError) {
  Config config = Config::from_text("model: {family: decoder}\n", "run.yaml");
  const Model model = build_model(config.root(), {0, 32});

  EXPECT_NO_THROW(config.throw_errors());
  EXPECT_TRUE(model.chain.empty());
  EXPECT_FALSE(model.remat_sites.empty()) << "recompute is checked all the same";
}

TEST(DecoderKeys, TakeThePartsOfGpt2) {
  const DecoderConfig c = read(
      "norm: layer, activation: gelu_tanh, position: learned, bias: true, dropout: 0.1, max_positions: 1024, "
      "head_width: 3");

  EXPECT_TRUE(c.valid);
  EXPECT_TRUE(c.norm.layer && c.norm.bias && c.bias);
  EXPECT_EQ(c.activation, Activation::kGeluTanh);
  EXPECT_FALSE(c.rope.has_value()) << "and then a head may have an odd width";
  EXPECT_EQ(c.positions, 1024);
  EXPECT_EQ(c.dropout, 0.1);
  EXPECT_EQ(c.mlp, 4 * c.width);
  EXPECT_EQ(read("position: learned").positions, 32) << "data.seq_len by default";
  EXPECT_EQ(read("position: none").positions, 0);
}

TEST(DecoderKeys, TakeTheStretchOfLlama3) {
  const DecoderConfig c = read(
      "rope_theta: 500000, rope_scaling: {kind: llama3, factor: 32, low_freq_factor: 2, high_freq_factor: 5, "
      "original_positions: 4096}");

  const kernels::RopeAngles expected{500000, {32, 2, 5, 4096}};
  EXPECT_EQ(c.rope, expected);
  EXPECT_EQ(read("rope_scaling: llama3").rope->scaling.factor, 8);
  EXPECT_EQ(read("rope_scaling: {kind: none, factor: 8}").rope->scaling.original, 0);
}

TEST(DecoderKeys, RefuseWhatDoesNotGoTogether) {
  expect_refused("max_positions: 1024", "max_positions", "accepted: null");
  expect_refused("position: learned, max_positions: 31", "max_positions", "accepted: 32 or more");
  expect_refused("position: learned, rope_scaling: llama3", "rope_scaling.kind", "position: rope");
  // What would change nothing is a mistake, unless it is the default that a resolved file writes.
  for (const char* key :
       {"factor: 32", "low_freq_factor: 2", "high_freq_factor: 5", "original_positions: 64"}) {
    const std::string text = key, name = text.substr(0, text.find(':'));
    expect_refused("rope_scaling: {" + text + "}", "rope_scaling." + name, "kind: llama3");
  }
  const std::string once = refusal("family: decoder, rope_scaling: {kind: yarn, factor: 32}");
  EXPECT_EQ(once.find("factor"), std::string::npos) << "the unknown kind is the one error: " << once;
  expect_refused("position: none, rope_theta: 500", "rope_theta", "position: rope");
  EXPECT_TRUE(read("position: none, rope_theta: 10000").valid);
  expect_refused("rope_scaling: {kind: llama3, low_freq_factor: 4, high_freq_factor: 4}",
                 "rope_scaling.high_freq_factor", "above low_freq_factor 4");
  expect_refused("norm: batch", "norm", "rms");
  expect_refused("activation: relu", "activation", "gelu_tanh");
  expect_refused("position: alibi", "position", "learned");
  expect_refused("dropout: 1", "dropout", "below 1");
}

TEST(DecoderKeys, RefuseValuesOutsideTheirRanges) {
  for (const char* key : {"layers", "width", "heads", "kv_heads", "head_width", "mlp", "vocab", "head_chunk"})
    for (const char* value : {": 0", ": -1", ": 1.5", ": 100000000000"})
      expect_refused(std::string(key) + value, key, "accepted");
  for (const char* keys : {"rope_theta: 0", "norm_eps: 0", "init_std: 0", "init_std: .inf", "window: -1"})
    expect_refused(keys, std::string(keys).substr(0, std::string(keys).find(':')), "accepted");
}

TEST(DecoderKeys, RefuseAModelWithMoreParametersThanCanBeCounted) {
  expect_refused("layers: 60000, width: 16777216, heads: 16777216, head_width: 16777216", "width",
                 "parameters");
  expect_refused("width: 16777216, mlp: 16777216, heads: 2", "width", "parameters");
}

TEST(DecoderKeys, NoteAllErrorsAtOnce) {
  const std::string all = refusal("family: decoder, heads: 6, kv_heads: 4, bias: 3, vocab: 3, layers: 0");

  for (const char* path : {"model.kv_heads", "model.head_width", "model.bias", "model.vocab", "model.layers"})
    EXPECT_NE(all.find(path), std::string::npos) << path << " is missing in\n" << all;
}

TEST(DecoderKeys, NameTheNearestOfAnUnknownKey) {
  expect_refused("layer: 2", "layer", "layers");
}

TEST(Families, AreDecoderByDefaultAndMustBeKnown) {
  EXPECT_EQ(refusal("width: 64"), "nothing was refused");
  EXPECT_NE(refusal("family: decodr").find("decoder"), std::string::npos);
  for (const ModelFamily& family : model_families())
    EXPECT_TRUE(family.supported.has(Axis::kFsdp)) << family.name;
}

}  // namespace
}  // namespace dew::test
