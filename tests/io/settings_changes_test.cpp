#include "io/settings_changes.h"

#include <gtest/gtest.h>

#include "base/check.h"

namespace dew::test {
namespace {

using Changes = std::vector<std::string>;

TEST(SettingsChanges, NamesWhatBearsOnLearningAlone) {
  const std::string before =
      "run: {name: a, steps: 100}\nmesh: {fsdp: 4}\nmodel: {rope_theta: 10000, window: [0, 8], norm: rms}\n"
      "optimizer: {lr: 3e-3}\nlog: {every: 5}\n";
  const std::string now =
      "# another version\nrun: {name: b, steps: 200}\nmesh: {fsdp: 2}\n"
      "model: {rope_theta: 500000, window: [0, 9], norm: rms}\noptimizer: {lr: 3e-3}\nlog: {every: 1}\n";

  EXPECT_EQ(settings_changes(before, "old", before), Changes{});
  EXPECT_EQ(settings_changes(before, "old", now),
            (Changes{"run.steps 200 (was 100)", "model.rope_theta 500000 (was 10000)",
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
  ASSERT_EQ(settings_changes(before, "old", now).size(), 1U);
}

TEST(SettingsChanges, KnowsSectionsAndShortForms) {
  EXPECT_EQ(settings_changes("model: {rope_scaling: {kind: none, factor: 8}}\n", "old",
                             "model: {rope_scaling: {kind: llama3, factor: 8}}\n"),
            Changes{"model.rope_scaling.kind llama3 (was none)"});
  // A key that an older version did not know is no change; a word that begins like a section is none either.
  EXPECT_EQ(settings_changes("model: {width: 8}\n", "old", "model: {width: 8, dropout: 0.1}\nmodels: 3\n"),
            Changes{});
  EXPECT_EQ(settings_changes("schedule: null\n", "old", "schedule: {kind: cosine}\n"),
            Changes{"schedule {kind: cosine} (was null)"});
}

TEST(SettingsChanges, RefusesWhatIsNoYaml) {
  try {
    settings_changes("a: [", "old.h5", "a: 1\n");
    FAIL() << "nothing was refused";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("old.h5"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace dew::test
