// The program itself on two ranks, given some of the damaged descriptions and token directories of the tests
// yaml_fuzz and token_fuzz: it ends in time with 0, 1 or 2, never by a signal, and says why once.
// DEW_FUZZ_DRAWS and DEW_FUZZ_SEED ask for other draws; a failing draw prints its seed and the damage.
#include <gtest/gtest.h>

#include <cmath>

#include "system/layout_cases.h"
#include "system/token_mutation.h"

namespace dew::testing {
namespace {

/// What the program was given in words, and its end.
void expect_clear(const Outcome& outcome, const RunFolder& run, const std::string& given) {
  EXPECT_FALSE(outcome.timed_out) << given;
  EXPECT_TRUE(outcome.status == 0 || outcome.status == 1 || outcome.status == 2) << outcome.status << '\n'
                                                                                 << given << outcome.text();
  if (outcome.status == 0) {
    EXPECT_EQ(count_of(outcome.out, "done: 2 steps"), 1) << outcome.text() << given;
    for (const double loss : run.losses()) EXPECT_TRUE(std::isfinite(loss)) << given;
    return;
  }
  // A rank whose data cannot be read ends the job alone; another may meet its own fault before.
  const int told = count_of(outcome.err, "dew_train: ");
  EXPECT_TRUE(told == 1 || (outcome.status == 1 && told == 2)) << outcome.text() << given;
  EXPECT_EQ(count_of(outcome.err, "check failed"), 0) << outcome.text() << given;
  EXPECT_EQ(count_of(outcome.err, "std::"), 0) << outcome.text() << given;
  EXPECT_TRUE(outcome.status == 1 || !run.exists()) << "a refused run wrote\n" << outcome.text() << given;
}

Outcome train_two_steps(const RunFolder& run, const std::string& yaml, const Words& more = {}) {
  Launch launch = run.launch(2, more);
  launch.arguments.front() = yaml;
  for (const std::string& word :
       {"run.dir=" + run.dir(), std::string("run.steps=2"), std::string("log.every=1")})
    launch.arguments.insert(launch.arguments.end(), {"--set", word});
  launch.limit = std::chrono::seconds(60);
  return train(std::move(launch));
}

std::string seed_text(std::uint64_t seed) {
  return "DEW_FUZZ_DRAWS=1 DEW_FUZZ_SEED=" + std::to_string(seed) + ":\n";
}

TEST(InputFuzz, DamagedDescriptionsEndTheProgramClearly) {
  const std::int64_t draws = number_from("DEW_FUZZ_DRAWS", 8), first = number_from("DEW_FUZZ_SEED", 1);
  for (std::int64_t i = 0; i < draws; ++i) {
    const auto seed = static_cast<std::uint64_t>(first + i);
    Draws random(seed);
    const RunFolder run("accumulate: 2\neval: {every: 1}\n");
    const std::string text = mutated(read_file(run.yaml()), {}, random);
    const Outcome outcome = train_two_steps(run, run.folder().write("mutant.yaml", text));
    expect_clear(outcome, run, seed_text(seed) + printable(text));
  }
}

TEST(InputFuzz, DamagedTokenDirectoriesEndTheProgramClearly) {
  const std::int64_t draws = number_from("DEW_FUZZ_DRAWS", 8), first = number_from("DEW_FUZZ_SEED", 1);
  for (std::int64_t i = 0; i < draws; ++i) {
    const auto seed = static_cast<std::uint64_t>(first + i);
    Draws random(seed);
    const RunFolder run;
    const std::string directory = run.file("data");
    write_valid_tokens(directory, random);
    const std::string done = damage_tokens(directory, random);
    const Outcome outcome = train_two_steps(
        run, run.yaml(),
        {"data.sentences=null", "data.tokens=" + directory, "data.batch=4", "data.seq_len=8"});
    expect_clear(outcome, run, seed_text(seed) + done);
    EXPECT_TRUE(outcome.status != 0 || is_sound(directory, 8)) << "trained on damaged data\n" << done;
  }
}

// The description itself may be anything that a path can name.
TEST(InputFuzz, DescriptionsThatAreNoTextAreRefused) {
  const RunFolder run;
  std::string flood = "mesh: {order: [";
  for (int i = 0; i < 100'000; ++i) flood += "w" + std::to_string(i) + ", ";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"/dev/zero", "1 MiB"},
      {run.folder().write("large.yaml", std::string(3 << 20, ' ')), "1 MiB"},
      {run.folder().write("deep.yaml", "a: " + std::string(1 << 18, '[') + std::string(1 << 18, ']')),
       "nested deeper"},
      {run.folder().write("flood.yaml", flood + "replica]}\n"), "is no mesh axis"},
      {run.folder().path(), "is a directory"}};
  for (const auto& [file, says] : cases) {
    SCOPED_TRACE(file);
    const Outcome outcome = train_two_steps(run, file);
    EXPECT_FALSE(outcome.timed_out);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_TRUE(outcome.says(says)) << outcome.err.substr(0, 2000);
    EXPECT_LT(outcome.err.size(), 100'000u);
  }
}

}  // namespace
}  // namespace dew::testing
