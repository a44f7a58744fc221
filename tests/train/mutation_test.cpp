// Damaged run descriptions through all that a program does with one before it trains: each gives a run that
// can be made, or a ConfigError whose every line names a path or a line.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "train/run_setup.h"

namespace dew {
namespace {

constexpr std::string_view kValid = R"(# A whole description.
run: {name: mutant, dir: runs/mutant, steps: 300, seed: 7}
mesh:
  replica: auto
  stage: 1
  fsdp: 1
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
  min_shard: 64
  tolerance: 0.02
  reduce: step
  rules:
    storage: [fsdp]
    vocab: [tensor]
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
  width: 16
  heads: 4
  kv_heads: 2
  head_width: auto
  mlp: 32
  vocab: auto
  rope_theta: 10000
  tied: false
  window: [8, 0]
  init_std: 0.02
  norm_eps: 1e-5
  head_chunk: 64
data:
  sentences: 50
  seq_len: 16
  batch: 12
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
)";

constexpr int kMutants = 300;
constexpr int kOfEachOutcome = 15;  // fewer would leave one of them untested

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

void expect_valid(const RunSetup& setup) {
  const RunSpec& spec = setup.spec;
  EXPECT_GE(spec.run.steps, 0);
  EXPECT_TRUE(std::isfinite(spec.optimizer.lr));
  EXPECT_NE(spec.checkpoint.every_steps.has_value(), spec.checkpoint.every_seconds.has_value());
  EXPECT_EQ(setup.mesh.size(), 1);
  EXPECT_EQ(spec.data.batch % spec.accumulate, 0);
  EXPECT_FALSE(setup.model.chain.empty());
  ASSERT_NE(setup.source, nullptr);
  EXPECT_GT(setup.source->tokens(Split::kTrain), spec.data.seq_len);
  EXPECT_GT(setup.plan.audit.elements, 0);
}

/// True for a line that begins with the file or with a key's path; an unknown key is known by its line.
bool names_a_place(const std::string& line) {
  static constexpr std::array<std::string_view, 20> kTop{
      "run",        "mesh",      "topology",     "pipeline", "layout", "device",    "transport",
      "precision",  "recompute", "reproducible", "model",    "data",   "optimizer", "schedule",
      "accumulate", "ema",       "checkpoint",   "eval",     "log",    "failure"};
  if (line.starts_with("mutant.yaml: ") || line.find(" (line ") != std::string::npos) return true;
  const std::string key = line.substr(0, line.find_first_of(".: "));
  return std::find(kTop.begin(), kTop.end(), key) != kTop.end();
}

struct Tally {
  int accepted = 0;
  std::string told;  ///< every line of every refusal, each after a line end
};

/// Counts the text when a run can be made of it, and of its resolved form then too; checks and keeps its
/// messages when not. Any other exception ends the test that calls.
void try_out(const std::string& text, Tally& tally) {
  const HostGroup alone = HostGroup::alone();
  try {
    const auto setup = prepare_run(Config::from_text(text, "mutant.yaml"), alone);
    expect_valid(*setup);
    const std::string resolved = setup->config.resolved();
    const auto again = prepare_run(Config::from_text(resolved, "mutant.yaml"), alone);
    EXPECT_EQ(again->config.resolved(), resolved);
    ++tally.accepted;
  } catch (const ConfigError& error) {
    EXPECT_FALSE(error.messages().empty());
    for (const std::string& message : error.messages()) {
      std::istringstream lines(message);
      for (std::string line; std::getline(lines, line);) {
        EXPECT_TRUE(names_a_place(line)) << line;
        tally.told += '\n' + line;
      }
    }
  }
}

TEST(ConfigMutation, AcceptsTheWholeDescription) {
  Tally tally;
  try_out(std::string(kValid), tally);

  EXPECT_EQ(tally.accepted, 1) << tally.told;
}

TEST(ConfigMutation, GivesARunOrMessagesForDamagedFiles) {
  Mutator mutator(20240607);
  Tally tally;
  for (int i = 0; i < kMutants; ++i) {
    const std::string text = mutator.mutate(std::string(kValid));
    SCOPED_TRACE("mutant " + std::to_string(i) + ":\n" + text);
    try_out(text, tally);
  }

  EXPECT_GE(tally.accepted, kOfEachOutcome);  // harmless changes stay accepted
  EXPECT_GE(kMutants - tally.accepted, kOfEachOutcome);
  for (const char* late : {"layout.rules", "recompute", "data.", "model.", "mesh"})
    EXPECT_NE(tally.told.find('\n' + std::string(late)), std::string::npos) << late << " was never refused";
}

TEST(ConfigMutation, GivesMessagesForEveryTruncation) {
  Tally tally;
  for (std::size_t size = 0; size < kValid.size(); size += 7)
    try_out(std::string(kValid.substr(0, size)), tally);

  EXPECT_GE(tally.accepted, 1);
}

TEST(ConfigMutation, SurvivesRandomBytesOfYaml) {
  constexpr std::string_view kAlphabet = "[]{}:,-?&*!|>'\"%@`#~ \n\n  ab1.<=\\\t";
  std::mt19937 random(11);
  Tally tally;
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (std::size_t n = random() % 60; n > 0; --n) text += kAlphabet[random() % kAlphabet.size()];
    SCOPED_TRACE(text);
    try_out(text, tally);
  }

  EXPECT_EQ(tally.accepted, 0);
}

}  // namespace
}  // namespace dew
