// Random models on random layouts, each verified against one rank in f64 by the program itself.
// DEW_FUZZ_DRAWS and DEW_FUZZ_SEED ask for more than the few that run by default; a failing draw prints its
// seed and description.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "system/layout_cases.h"

namespace dew::testing {
namespace {

constexpr int kMostRanks = 16;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {
    draw_mesh();
    draw_model();
    draw_run(seed);
  }

  int ranks = 1;
  std::int64_t vocab = 0, seq_len = 0;
  Words assignments;

 private:
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }
  std::int64_t from(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  bool coin() { return below(2) == 0; }
  template <std::size_t N>
  std::string one_of(const std::array<const char*, N>& words) {
    return words[static_cast<std::size_t>(below(static_cast<std::int64_t>(N)))];
  }
  void set(const std::string& key, const std::string& value) { assignments.push_back(key + "=" + value); }
  void set(const std::string& key, std::int64_t value) { set(key, std::to_string(value)); }

  void draw_mesh() {
    const std::array<const char*, 6> names{"replica", "stage", "fsdp", "expert", "sequence", "tensor"};
    // One to four axes of 2, 3 or 4, as long as the ranks are few enough.
    const std::int64_t tries = from(1, 4);
    for (std::int64_t i = 0; i < tries; ++i) {
      const auto axis = static_cast<std::size_t>(below(6));
      const int extent = static_cast<int>(from(2, 4));
      if (extents_[axis] == 1 && ranks * extent <= kMostRanks) {
        extents_[axis] = extent;
        ranks *= extent;
      }
    }
    for (std::size_t a = 0; a < names.size(); ++a) set(std::string("mesh.") + names[a], extents_[a]);
    if (below(4) == 0) set("mesh.order", "[fsdp, tensor, replica, sequence, stage, expert]");
  }

  void draw_model() {
    const std::int64_t tensor = extents_[5], stage = extents_[1];
    const std::int64_t kv = from(1, 3), heads = tensor * kv * from(1, 3), head_width = 2 * from(1, 3);
    set("model.heads", heads);
    set("model.kv_heads", kv);
    set("model.head_width", head_width);
    set("model.width", from(5, 23));
    set("model.mlp", tensor * from(3, 13));
    vocab = from(3, 70);
    set("model.layers", std::max(from(1, 5), 2 * stage));
    if (coin()) set("model.tied", "true");
    set("model.head_chunk", from(1, 40));
    set("model.init_std", "0.1");
    seq_len = 2 * extents_[4] * from(1, 6);
    draw_parts();
    const std::int64_t windows = below(3);
    if (windows == 1) set("model.window", from(1, seq_len));
    if (windows == 2) set("model.window", "[" + std::to_string(from(1, seq_len)) + ", 0]");
  }

  void draw_parts() {
    set("model.norm", one_of(std::array<const char*, 2>{"rms", "layer"}));
    set("model.activation", one_of(std::array<const char*, 3>{"swiglu", "gelu", "gelu_tanh"}));
    set("model.position", one_of(std::array<const char*, 4>{"rope", "rope", "learned", "none"}));
    if (coin()) set("model.bias", "true");
    if (coin()) set("model.qk_norm", "true");
    if (coin()) set("model.dropout", one_of(std::array<const char*, 2>{"0.1", "0.5"}));
    set("data.pack", one_of(std::array<const char*, 3>{"auto", "documents", "windows"}));
  }

  void draw_run(std::uint64_t seed) {
    const bool staged = extents_[1] > 1;
    const std::int64_t accumulate = from(1, 2), microbatches = from(1, 5);
    set("accumulate", accumulate);
    set("pipeline.microbatches", microbatches);
    set("pipeline.schedule",
        one_of(std::array<const char*, 4>{"gpipe", "1f1b", "interleaved", "zero_bubble"}));
    const std::int64_t rows = extents_[0] * extents_[2] * extents_[3];
    set("data.batch", rows * accumulate * (staged ? microbatches : 1) * from(1, 2));
    set("data.seq_len", seq_len);
    set("run.seed", static_cast<std::int64_t>(seed % 1000));
    set("recompute",
        one_of(std::array<const char*, 5>{"none", "none", "full", "[attention]", "[qkv, mlp_hidden]"}));
    set("layout.reduce", one_of(std::array<const char*, 2>{"step", "microbatch"}));
    set("layout.tolerance", 1);
    set("layout.min_shard", one_of(std::array<const char*, 3>{"1", "100", "100000"}));
    if (coin())
      set("layout.rules", one_of(std::array<const char*, 5>{"{vocab: []}", "{mlp: []}", "{kv_heads: []}",
                                                            "{storage: [fsdp, expert, sequence]}",
                                                            "{heads: [], kv_heads: []}"}));
    set("sequence_exchange", one_of(std::array<const char*, 3>{"auto", "auto", "measured"}));
  }

  std::mt19937_64 random_;
  std::array<int, 6> extents_{1, 1, 1, 1, 1, 1};
};

TEST(LayoutFuzz, EveryDrawAgreesWithOneRank) {
  const std::int64_t draws = number_from("DEW_FUZZ_DRAWS", 6), first = number_from("DEW_FUZZ_SEED", 1);
  for (std::int64_t i = 0; i < draws; ++i) {
    const auto seed = static_cast<std::uint64_t>(first + i);
    const Draw draw(seed);
    const RunFolder run("optimizer: {lr: 0.01, clip: 0.5}\n");
    Words assignments = f64_with(draw.assignments);
    assignments.push_back(
        "data={tokens: " + write_masked_tokens(run.folder(), draw.vocab, 4000, draw.seq_len, seed) + "}");
    for (const std::string& assignment : draw.assignments)
      if (assignment.starts_with("data.")) assignments.push_back(assignment);
    const Outcome outcome = run.train(draw.ranks, assignments, {"--verify=2"});
    std::string text;
    for (const std::string& assignment : assignments) text += " --set '" + assignment + "'";
    ASSERT_EQ(outcome.status, 0) << "DEW_FUZZ_SEED=" << seed << " DEW_FUZZ_DRAWS=1, " << draw.ranks
                                 << " ranks:" << text << '\n'
                                 << outcome.text();
  }
}

}  // namespace
}  // namespace dew::testing
