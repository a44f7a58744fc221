#include "io/settings_changes.h"

#include <gtest/gtest.h>

namespace dew::test {
namespace {

using Changes = std::vector<std::string>;

/// The lines without what each begins with.
Changes changes(const std::string& before, const std::string& now) {
  const std::string start = "changed since the checkpoint: ";
  Changes out;
  for (const std::string& line : settings_changes(before, now)) {
    EXPECT_EQ(line.rfind(start, 0), 0U) << line;
    out.push_back(line.substr(start.size()));
  }
  return out;
}

TEST(SettingsChanges, NamesWhatBearsOnLearningAlone) {
  const std::string before =
      "run: {name: a, steps: 100}\nmesh: {fsdp: 4}\nmodel: {rope_theta: 10000, window: [0, 8], norm: rms}\n"
      "optimizer: {lr: 3e-3}\nlog: {every: 5}\n";
  const std::string now =
      "# another version\nrun: {name: b, steps: 200}\nmesh: {fsdp: 2}\n"
      "model: {rope_theta: 500000, window: [0, 9], norm: rms}\noptimizer: {lr: 3e-3}\nlog: {every: 1}\n";

  EXPECT_EQ(changes(before, before), Changes{});
  EXPECT_EQ(changes(before, now), (Changes{"run.steps 200 (was 100)", "model.rope_theta 500000 (was 10000)",
                                           "model.window [0, 9] (was [0, 8])"}));
}

TEST(SettingsChanges, ComparesBeyondWhatItShows) {
  std::string before = "model: {window: [", now = before;
  for (int i = 0; i < 200; ++i) {
    before += "1000, ";
    now += "1000, ";
  }
  before += "1]}\n";
  now += "2]}\n";
  ASSERT_EQ(changes(before, now).size(), 1U);
}

TEST(SettingsChanges, KnowsSectionsAndShortForms) {
  EXPECT_EQ(changes("model: {rope_scaling: {kind: none, factor: 8}}\n",
                    "model: {rope_scaling: {kind: llama3, factor: 8}}\n"),
            Changes{"model.rope_scaling.kind llama3 (was none)"});
  // A key that an older version did not know is no change; a word that begins like a section is none either.
  EXPECT_EQ(changes("model: {width: 8}\n", "model: {width: 8, dropout: 0.1}\nmodels: 3\n"), Changes{});
  EXPECT_EQ(changes("schedule: null\n", "schedule: {kind: cosine}\n"),
            Changes{"schedule {kind: cosine} (was null)"});
}

TEST(SettingsChanges, ComparesWhatListsHold) {
  EXPECT_EQ(changes("data: {x: [{a: 1}]}\n", "data: {x: [{a: 1}]}\n"), Changes{});
  EXPECT_EQ(changes("data: {x: [{a: 1}]}\n", "data: {x: [{a: 2}]}\n").size(), 1U);
  EXPECT_EQ(changes("data: {x: [{a: 1}]}\n", "data: {x: [{b: 1}]}\n").size(), 1U);
}

TEST(SettingsChanges, SaysWhenTheOldSettingsCannotBeRead) {
  const Changes lines = settings_changes("a: [", "a: 1\n");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].rfind("what changed since the checkpoint is not known: its settings", 0), 0U)
      << lines[0];
}

TEST(SettingsChanges, TakesTextsOfAnyLength) {
  const std::string list = "data: {text: [" + std::string(3 << 19, 'x') + "]}\n";
  EXPECT_EQ(changes(list + "ema: 0.9\n", list + "ema: 0.99\n"), Changes{"ema 0.99 (was 0.9)"});
}

}  // namespace
}  // namespace dew::test
