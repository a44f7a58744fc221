// Damaged run descriptions, in this process on two ranks: a clear error on both, or a right run. Never a
// crash, a hang, or an exception from below. DEW_FUZZ_DRAWS and DEW_FUZZ_SEED ask for other draws than those
// that run by default; a failing draw prints its seed and description. DEW_FUZZ_COUNTS
// prints how many ended in which way.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "system/layout_cases.h"
#include "system/mutant_run.h"
#include "system/shared_folder.h"
#include "system/text_mutation.h"
#include "train/run_setup.h"

namespace dew::testing {
namespace {

constexpr const char* kName = "mutant.yaml";
constexpr std::int64_t kParts = 10;  // tests, so that each is far from the limit of one

/// A description that trains within milliseconds.
std::string tiny(const std::string& mesh, const std::string& extra = {}) {
  return "# two ranks\n"
         "run: {name: tiny, steps: 2, seed: 7}\n"
         "mesh: " +
         mesh +
         "\n"
         "layout: {min_shard: 16, tolerance: 1}\n"
         "device: {peak: 1e9}\n"
         "model: {family: decoder, layers: 2, width: 8, heads: 2, kv_heads: 2, mlp: 8}\n"
         "optimizer: {kind: adamw, lr: 1e-3, betas: [0.9, 0.95], weight_decay: 0.1, clip: 1.0}\n"
         "schedule:\n"
         "  kind: cosine\n"
         "  warmup: 1\n"
         "  final: 0.1\n" +
         extra;
}

std::vector<std::string> valid_descriptions(const SharedFolder& folder) {
  const std::string data = "data: {sentences: 40, seq_len: 8, batch: 4, validation: 0.1}\n";
  const std::string text = folder.write("words.txt", std::string(600, 'w') + std::string(400, ' '));
  std::vector<std::string> all{
      tiny("{replica: 2}", data + "ema: 0.9\nlog: {every: 1}\neval: {every: 1, batches: 2}\n"),
      tiny("{fsdp: 2}", data + "checkpoint: {every: 1, keep: 2}\naccumulate: 2\nrecompute: [mlp]\n"),
      tiny("{stage: 2}", data + "pipeline: {schedule: zero_bubble, microbatches: 2, layers: [1, 1]}\n"),
      tiny("{sequence: auto}", data + "sequence_exchange: auto\nprecision: {compute: f64, master: f64}\n"),
      tiny("{tensor: 2}", "data: {text: " + text + ", seq_len: 8, batch: 4}\n")};
  // The repository's own, on two ranks.
  const std::map<std::string, std::string> meshes{{"quickstart", "{replica: 1, fsdp: 2}"},
                                                  {"interleaved", "{stage: 2}"},
                                                  {"sequence", "{sequence: 2}"},
                                                  {"tensor", "{tensor: 2}"}};
  for (const auto& [name, mesh] : meshes) {
    std::string config = read_file(std::string(DEW_SOURCE_DIR "/configs/") + name + ".yaml");
    const std::size_t at = config.find("\nmesh: ") + 1;
    all.push_back(config.replace(at, config.find('\n', at) - at, "mesh: " + mesh));
  }
  return all;
}

/// The rows of the table of keys: "| `run.name` | text | ...".
std::vector<KnownKey> all_keys() {
  std::vector<KnownKey> keys;
  const std::string table = key_table();
  for (std::size_t at = table.find("| `"); at != std::string::npos; at = table.find("\n| `", at)) {
    const std::size_t begin = table.find('`', at) + 1, end = table.find('`', begin);
    const std::size_t type = end + 4, type_end = table.find(" |", type);
    keys.push_back({table.substr(begin, end - begin), table.substr(type, type_end - type)});
    at = type_end;
  }
  return keys;
}

class YamlFuzz : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(YamlFuzz, EveryDrawIsRefusedClearlyOrTrains) {
  const std::int64_t draws = number_from("DEW_FUZZ_DRAWS", 1000), first = number_from("DEW_FUZZ_SEED", 1);
  const SharedFolder folder;
  const std::vector<std::string> valid = valid_descriptions(folder);
  const std::vector<KnownKey> keys = all_keys();
  ASSERT_GE(keys.size(), 60u);
  MutantWatch watch;
  std::map<End, int> count;
  for (std::int64_t i = GetParam(); i < draws; i += kParts) {
    const auto seed = static_cast<std::uint64_t>(first + i);
    Draws random(seed);
    const std::string text = mutated(random.one_of(valid), keys, random);
    const std::string shown =
        "DEW_FUZZ_DRAWS=1 DEW_FUZZ_SEED=" + std::to_string(seed) + ":\n" + printable(text);
    watch.begin(shown);
    const Ending ending = ending_of(text, kName, folder.path());
    ++count[ending.end];
    EXPECT_EQ(fault_of(ending, kName), "") << shown;
  }
  if (std::getenv("DEW_FUZZ_COUNTS") != nullptr && world().rank() == 0)
    for (const auto& [end, times] : count) std::printf("  ending %d: %d\n", static_cast<int>(end), times);
}

INSTANTIATE_TEST_SUITE_P(Parts, YamlFuzz, ::testing::Range(std::int64_t{0}, kParts));

TEST(ValidDescriptions, Train) {
  const SharedFolder folder;
  for (const std::string& text : valid_descriptions(folder)) {
    const Ending ending = ending_of(text, kName, folder.path());
    EXPECT_TRUE(ending.end == End::kTrained || ending.end == End::kPlanned) << text << ending.text();
    if (text.starts_with("# two ranks")) {
      EXPECT_EQ(ending.end, End::kTrained) << text;
    }
    EXPECT_EQ(fault_of(ending, kName), "");
  }
}

}  // namespace
}  // namespace dew::testing
