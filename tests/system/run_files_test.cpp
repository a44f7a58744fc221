// What a finished run leaves: run.yaml, metrics.jsonl and checkpoints.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>

#include "base/version.h"
#include "system/run_folder.h"

namespace dew::testing {
namespace {

constexpr std::int64_t kTokensPerStep = 12 * 16;

/// `a.b` of each row of `dew_train --keys`.
std::vector<std::string> documented_keys() {
  std::istringstream table(train(0, {"--keys"}).out);
  std::vector<std::string> keys;
  for (std::string line; std::getline(table, line);)
    if (line.starts_with("| `")) keys.push_back(line.substr(3, line.find('`', 3) - 3));
  return keys;
}

std::set<std::string> names_in(const nlohmann::json& line) {
  std::set<std::string> names;
  for (const auto& [name, value] : line.items()) names.insert(name);
  return names;
}

TEST(RunFiles, RunYamlHoldsEveryKeyAndTheVersion) {
  const RunFolder run;
  ASSERT_EQ(run.train(0, {"run.steps=1"}).status, 0);
  const std::string resolved = read_file(run.dir() + "/run.yaml");
  const std::vector<std::string> keys = documented_keys();
  ASSERT_GT(keys.size(), 60u);
  for (const std::string& key : keys) {
    const std::string leaf = key.substr(key.rfind('.') + 1);
    const std::string indent(2 * static_cast<std::size_t>(std::count(key.begin(), key.end(), '.')), ' ');
    EXPECT_NE(("\n" + resolved).find("\n" + indent + leaf + ":"), std::string::npos) << key << '\n'
                                                                                     << resolved;
  }
  EXPECT_NE(resolved.find(kVersion), std::string::npos) << resolved;
}

TEST(RunFiles, RunYamlRunAgainGivesTheSameLossesAndWeightsBitByBit) {
  const RunFolder run(
      "ema: 0.9\nschedule: {kind: cosine, warmup: 2, final: 0.1}\noptimizer: {lr: 0.01, clip: 0.5}\n"),
      again;
  ASSERT_EQ(run.train(2, {"mesh.fsdp=2", "accumulate=3"}).status, 0);
  const Outcome outcome = train(2, {run.dir() + "/run.yaml", "--set", "run.dir=" + again.dir()});
  ASSERT_EQ(outcome.status, 0) << outcome.text();
  ASSERT_EQ(run.losses().size(), 4u);
  EXPECT_EQ(run.losses(), again.losses());
  EXPECT_EQ(difference_of(run.checkpoint(4), again.checkpoint(4)), "");
}

TEST(RunFiles, MetricsHaveTheFieldsOfTheContract) {
  const RunFolder run("eval: {every: 2, batches: 1}\n");
  ASSERT_EQ(run.train(2, {"run.steps=5", "mesh.fsdp=2"}).status, 0);
  const std::set<std::string> fields{"step",
                                     "loss",
                                     "grad_norm",
                                     "lr",
                                     "tokens",
                                     "tokens_per_second",
                                     "step_seconds",
                                     "mfu",
                                     "data_wait_seconds",
                                     "comm_wait_seconds",
                                     "memory_bytes"};
  const auto lines = run.metrics();
  ASSERT_EQ(lines.front()["run"], "tiny") << "the head comes first";
  for (const char* name : {"version", "peak_flops_per_rank", "mfu_counts"})
    EXPECT_TRUE(lines.front().contains(name)) << name;
  std::int64_t step = 0;
  std::vector<std::int64_t> evaluated;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].contains("val_loss")) {
      EXPECT_EQ(names_in(lines[i]), (std::set<std::string>{"step", "val_loss"}));
      EXPECT_GT(lines[i]["val_loss"].get<double>(), 1);
      evaluated.push_back(lines[i]["step"]);
      continue;
    }
    EXPECT_EQ(names_in(lines[i]), fields);
    EXPECT_EQ(lines[i]["step"], ++step);
    EXPECT_EQ(lines[i]["tokens"], step * kTokensPerStep) << "cumulative";
    for (const char* name :
         {"loss", "grad_norm", "lr", "tokens_per_second", "step_seconds", "mfu", "memory_bytes"})
      EXPECT_GT(lines[i][name].get<double>(), 0) << name;
    for (const char* name : {"data_wait_seconds", "comm_wait_seconds"})
      EXPECT_GE(lines[i][name].get<double>(), 0) << name;
  }
  EXPECT_EQ(step, 5);
  EXPECT_EQ(evaluated, (std::vector<std::int64_t>{2, 4, 5})) << "as told, and at the last step";
}

// A number that was cut to a few digits would show fewer in every line: one in ten sums of f64 ends in a
// zero.
TEST(RunFiles, MetricsNumbersKeepAllTheirDigits) {
  const RunFolder run;
  ASSERT_EQ(run.train(0, f64_with({"run.steps=6"})).status, 0);
  const std::string text = read_file(run.dir() + "/metrics.jsonl");
  std::size_t most = 0;
  for (std::size_t at = text.find("\"loss\": "); at != std::string::npos;
       at = text.find("\"loss\": ", at + 1)) {
    std::size_t digits = 0;
    for (std::size_t i = at + 8; text[i] != ','; ++i)
      digits += std::isdigit(static_cast<unsigned char>(text[i])) ? 1 : 0;
    most = std::max(most, digits);
  }
  EXPECT_GE(most, 16u) << text;
}

TEST(RunFiles, LinesAreLoggedAsToldAndAtTheLastStep) {
  const RunFolder run;
  ASSERT_EQ(run.train(0, {"run.steps=7", "log.every=3"}).status, 0);
  std::vector<std::int64_t> steps;
  for (const auto& line : run.metrics())
    if (line.contains("loss")) steps.push_back(line["step"]);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{3, 6, 7}));
}

TEST(RunFiles, TheNewestCheckpointsAreKeptAndTheLastStepIsSaved) {
  const RunFolder run;
  ASSERT_EQ(run.train(2, {"run.steps=7", "checkpoint.every=3", "checkpoint.keep=2", "mesh.fsdp=2"}).status,
            0);
  EXPECT_EQ(run.checkpoint_names(), (Words{"step_00000006.h5", "step_00000007.h5"}));
  const RunFolder last;
  ASSERT_EQ(last.train(0, {"checkpoint.every=0", "eval.every=0"}).status, 0);
  EXPECT_EQ(last.checkpoint_names(), Words{"step_00000004.h5"});
  EXPECT_TRUE(last.metrics().back().contains("val_loss"));
}

TEST(RunFiles, ACheckpointHoldsTheStateUnderGlobalNamesAndShapes) {
  const RunFolder run;
  ASSERT_EQ(run.train(3, {"mesh.fsdp=3", "ema=0.9", "layout.min_shard=1"}).status, 0);
  const Hdf5File file = Hdf5File::open(run.checkpoint(4));
  EXPECT_EQ(file.read_signed("/run", "step"), 4);
  EXPECT_EQ(file.read_signed("/run", "tokens"), 4 * kTokensPerStep);
  EXPECT_EQ(file.read_unsigned("/run", "seed"), 7u);
  EXPECT_EQ(file.read_text("/run", "config"), read_file(run.dir() + "/run.yaml"));
  EXPECT_TRUE(file.has("/data"));
  const auto tensors = tensors_of(run.checkpoint(4));
  std::size_t parameters = 0;
  for (const StoredTensor& tensor : tensors) {
    if (!tensor.name.starts_with("/params/")) continue;
    ++parameters;
    const std::string name = tensor.name.substr(std::string("/params/").size());
    for (const std::string& other :
         {"/optimizer/" + name + "/m", "/optimizer/" + name + "/v", "/ema/" + name})
      EXPECT_EQ(file.dataset(other).shape(), tensor.shape) << other;
  }
  EXPECT_GE(parameters, 9u);
  EXPECT_EQ(tensors.size(), 4 * parameters);
  EXPECT_EQ(file.dataset("/params/embed.weight").shape(), (Shape{256, 16}));
}

TEST(RunFiles, TheSameInDoublePrecisionIsStoredSo) {
  const RunFolder run;
  ASSERT_EQ(run.train(0, {"precision.master=f64", "run.steps=1"}).status, 0);
  for (const StoredTensor& tensor : tensors_of(run.checkpoint(1)))
    EXPECT_EQ(tensor.dtype, DType::kF64) << tensor.name;
}

}  // namespace
}  // namespace dew::testing
