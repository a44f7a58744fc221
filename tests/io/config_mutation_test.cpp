// Damaged run descriptions: each gives a valid RunSpec or a ConfigError whose every message names a path or a
// line.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "base/check.h"
#include "io/config.h"
#include "io/run_spec.h"

namespace dew {
namespace {

constexpr std::string_view kValid = R"(# A whole description.
run: {name: mutant, dir: runs/mutant, steps: 300, seed: 7}
mesh:
  replica: auto
  stage: 1
  fsdp: 2
  expert: 1
  sequence: 1
  tensor: 1
  order: [replica, stage, fsdp, expert, sequence, tensor]
  across_nodes: [replica, stage, fsdp]
topology: {nodes: auto}
pipeline:
  schedule: 1f1b
  microbatches: 4
  layers: auto
layout:
  min_shard: 65536
  tolerance: 0.02
  reduce: step
  rules:
    heads: [tensor]
    embed: [fsdp]
  offload: []
device:
  kind: auto
  peak: 250e9
transport: auto
precision: {compute: f32, master: f32, reduce: f32}
recompute: [attention, mlp]
reproducible: false
model:
  family: decoder
  layers: 2
  width: 64
  rope_theta: 10000
  window: null
data:
  text:
    - "one file.txt"
    - two.txt
  seq_len: 32
  batch: 16
  validation: 0.1
optimizer:
  kind: adamw
  lr: 1e-3
  betas: [0.9, 0.95]
  eps: 1e-8
  weight_decay: 0.1
  clip: 1.0
schedule: {kind: cosine, warmup: 20, final: 0.1, steps: auto}
accumulate: 2
ema: 0.999
checkpoint:
  every: 10m
  keep: 2
  async: false
  resume: auto
eval: {every: 100, batches: all}
log: {every: 10}
failure: {stall: 30m, agree: 24h}
)";

constexpr int kMutants = 300;

/// A seeded generator of damage. Every choice is a plain remainder, so that the mutants are the same
/// everywhere.
class Mutator {
 public:
  explicit Mutator(std::uint32_t seed) : random_(seed) {}

  std::string mutate(std::string text) {
    const std::size_t changes = 1 + below(3);
    for (std::size_t i = 0; i < changes; ++i) text = change(std::move(text));
    return text;
  }

 private:
  std::size_t below(std::size_t count) { return count == 0 ? 0 : random_() % count; }

  static std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines(1);
    for (char c : text) {
      lines.back() += c;
      if (c == '\n') lines.emplace_back();
    }
    return lines;
  }
  static std::string joined(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line;
    return text;
  }

  /// Puts another value behind one of the colons.
  std::string replace_value(const std::string& text) {
    static constexpr std::array<const char*, 26> kValues{"9223372036854775808",
                                                         "-1",
                                                         "0",
                                                         "1e999",
                                                         "nan",
                                                         "-.inf",
                                                         "4611686018427387904",
                                                         "[1, [2, 3]]",
                                                         "{a: {b: c}}",
                                                         "null",
                                                         "",
                                                         "true",
                                                         "\"5\"",
                                                         "'x y'",
                                                         "|\n  text",
                                                         "*a",
                                                         "&a 1",
                                                         "!!str 3",
                                                         "\xe6\x97\xa5\xe6\x9c\xac",
                                                         "1_000",
                                                         "0x10",
                                                         "1e3",
                                                         "[]",
                                                         "auto",
                                                         "2h",
                                                         "2"};
    std::vector<std::size_t> colons;
    for (std::size_t i = 0; i + 1 < text.size(); ++i) {
      if (text[i] == ':' && text[i + 1] == ' ') colons.push_back(i + 2);
    }
    if (colons.empty()) return text;
    const std::size_t begin = colons[below(colons.size())];
    const std::size_t end = std::min(text.find_first_of(",}\n", begin), text.size());
    return text.substr(0, begin) + kValues[below(kValues.size())] + text.substr(end);
  }

  std::string change(std::string text) {
    static constexpr std::array<const char*, 8> kOdd{"\t", "\xc3\xa9", "\xff",  "\xe2\x80\xa8",
                                                     "\"", "{",        "---\n", ": "};
    std::vector<std::string> lines = lines_of(text);
    const std::size_t line = below(lines.size()), other = below(lines.size());
    const std::size_t at = below(text.size());
    switch (below(10)) {
      case 0:
        lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(line));
        return joined(lines);
      case 1:
        lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(other), std::string(lines[line]));
        return joined(lines);
      case 2:
        std::swap(lines[line], lines[other]);
        return joined(lines);
      case 3:
        if (!text.empty()) text[at] = static_cast<char>(below(256));
        return text;
      case 4:
        lines[line].insert(0, below(5), ' ');
        return joined(lines);
      case 5:
        return text.substr(0, at);
      case 6:
        return text.insert(at, kOdd[below(kOdd.size())]);
      case 7:
        return text.erase(at, 1 + below(20));
      default:
        return replace_value(text);
    }
  }

  std::mt19937 random_;
};

void expect_valid(const RunSpec& spec) {
  EXPECT_GE(spec.run.steps, 0);
  EXPECT_GE(spec.data.batch, 1);
  EXPECT_GE(spec.data.seq_len, 1);
  EXPECT_GE(spec.accumulate, 1);
  EXPECT_TRUE(std::isfinite(spec.optimizer.lr));
  EXPECT_NE(spec.checkpoint.every_steps.has_value(), spec.checkpoint.every_seconds.has_value());
  EXPECT_EQ(!spec.data.tokens.empty() + !spec.data.text.empty() + (spec.data.sentences > 0), 1);
}

bool names_a_place(const std::string& message) {
  static constexpr std::array<const char*, 6> kPlaces{"(line ",          "(default)",      "(--set)",
                                                      "model: required", "data: required", "mutant.yaml: "};
  return std::any_of(kPlaces.begin(), kPlaces.end(),
                     [&](const char* place) { return message.find(place) != std::string::npos; });
}

/// Reads everything as a program does, on 4 ranks. Throws ConfigError.
RunSpec read_whole(Config& config) {
  ConfigSection root = config.root();
  RunSpec spec = read_run_spec(root);
  ConfigSection model = root.section({"model", "", ""});
  model.text({"family", "", ""}, "decoder");
  model.integer({"layers", "", ""}, 2, {.low = 1});
  model.integer({"width", "", ""}, 64, {.low = 1});
  model.real({"rope_theta", "", ""}, 10000, {.low = 0});
  model.integer_or({"window", "", ""}, "null", std::nullopt, {.low = 1});
  const MeshShape mesh = resolve_mesh(spec.mesh, 4, root);
  check_batch(spec, mesh, root);
  config.throw_errors();
  EXPECT_EQ(mesh.size(), 4);
  return spec;
}

/// True when the text is a valid description, which its resolved form then is too; checks its messages when
/// it is not.
bool accepts(const std::string& text) {
  try {
    Config config = Config::from_text(text, "mutant.yaml");
    expect_valid(read_whole(config));
    Config again = Config::from_text(config.resolved(), "mutant.yaml");
    EXPECT_NO_THROW(read_whole(again)) << config.resolved();
    EXPECT_EQ(again.resolved(), config.resolved());
    return true;
  } catch (const ConfigError& error) {
    EXPECT_FALSE(error.messages().empty());
    for (const std::string& message : error.messages()) EXPECT_TRUE(names_a_place(message)) << message;
    return false;
  }
}

TEST(ConfigMutation, AcceptsTheWholeDescription) {
  EXPECT_TRUE(accepts(std::string(kValid)));
}

TEST(ConfigMutation, GivesASpecOrMessagesForDamagedFiles) {
  Mutator mutator(20240607);
  int accepted = 0;
  for (int i = 0; i < kMutants; ++i) {
    const std::string text = mutator.mutate(std::string(kValid));
    SCOPED_TRACE("mutant " + std::to_string(i) + ":\n" + text);
    accepted += accepts(text);
  }

  EXPECT_GE(accepted, 15);  // harmless changes stay accepted
  EXPECT_LE(accepted, 150);
}

TEST(ConfigMutation, GivesMessagesForEveryTruncation) {
  int accepted = 0;
  for (std::size_t size = 0; size < kValid.size(); size += 7)
    accepted += accepts(std::string(kValid.substr(0, size)));

  EXPECT_GE(accepted, 1);
}

TEST(ConfigMutation, SurvivesRandomBytesOfYaml) {
  constexpr std::string_view kAlphabet = "[]{}:,-?&*!|>'\"%@`#~ \n\n  ab1.<=\\\t";
  std::mt19937 random(11);
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (std::size_t n = random() % 60; n > 0; --n) text += kAlphabet[random() % kAlphabet.size()];
    SCOPED_TRACE(text);
    EXPECT_FALSE(accepts(text));
  }
}

}  // namespace
}  // namespace dew
