// The command line of dew_train: what is refused, what is said, and that nothing is written then.
#include <gtest/gtest.h>

#include "system/run_folder.h"

namespace dew::testing {
namespace {

constexpr int kWrong = 2;

TEST(CommandLine, HelpAndVersionExitWith0AndPrintOnce) {
  for (const int ranks : {0, 3}) {
    const Outcome help = train(ranks, {"--help"}), version = train(ranks, {"--version"});
    EXPECT_EQ(help.status, 0) << help.err;
    EXPECT_EQ(version.status, 0) << version.err;
    EXPECT_EQ(count_of(help.out, "Options"), 1) << help.out;
    EXPECT_EQ(count_of(version.out, "dew_train "), 1) << version.out;
    for (const char* option : {"--set", "--resume", "--verify", "--plan", "RUN.yaml"})
      EXPECT_TRUE(help.says(option)) << option;
  }
}

TEST(CommandLine, HelpNamesNoOptionThatAUserCannotUse) {
  EXPECT_FALSE(train(0, {"--help"}).says("--run-file"));
}

TEST(CommandLine, TheTableOfKeysHoldsEverySection) {
  const Outcome keys = train(0, {"--keys"});
  EXPECT_EQ(keys.status, 0) << keys.err;
  for (const char* key : {"`run.steps`", "`mesh.fsdp`", "`layout.min_shard`", "`model.width`", "`data.batch`",
                          "`optimizer.lr`", "`checkpoint.keep`", "`failure.stall`"})
    EXPECT_TRUE(keys.says(key)) << key;
}

TEST(CommandLine, WrongOnesExitWith2AndNameTheWord) {
  const RunFolder run;
  struct Case {
    Words words;
    std::string part;
  };
  const std::string& yaml = run.yaml();
  const std::vector<Case> cases{
      {{}, "RUN.yaml"},
      {{yaml, yaml}, "RUN.yaml"},
      {{yaml, "--bogus"}, "--bogus"},
      {{yaml, "--verif"}, "--verif"},
      {{run.file("none.yaml")}, "none.yaml: no such file"},
      {{yaml, "--set"}, "--set"},
      {{yaml, "--set", "foo"}, "--set foo: accepted: key.path=value"},
      {{yaml, "--set", "=3"}, "--set =3: "},
      {{yaml, "--set", "run=3"}, "run (--set): 3: accepted: a mapping"},
      {{yaml, "--set", "run.steps=many"}, "run.steps (--set): many: accepted: integer"},
      {{yaml, "--set", "run.step=3"}, "run.step (--set): unknown key; did you mean run.steps?"},
      {{yaml, "--set", "data.batch=[1"}, "data.batch"},
      {{yaml, "--resume=maybe"}, "checkpoint.resume (--set): maybe: accepted: auto, never or require"},
      {{yaml, "--verify=0"}, "--verify=0: accepted: a number of steps"},
      {{yaml, "--verify=two"}, "--verify=two: accepted: a number of steps"},
      {{yaml, "--verify=shrink"}, "--verify=shrink: not available in this version"},
      {{yaml, "--plan"}, "--plan: not available in this version"},
      {{yaml, "--plan=search"}, "--plan: not available in this version"},
  };
  for (const Case& c : cases) {
    const Outcome outcome = train(0, c.words);
    EXPECT_EQ(outcome.status, kWrong) << c.part << '\n' << outcome.text();
    EXPECT_NE(outcome.err.find(c.part), std::string::npos) << c.part << '\n' << outcome.text();
    EXPECT_TRUE(outcome.out.empty()) << outcome.out;
    EXPECT_FALSE(run.exists()) << c.part;
  }
}

TEST(CommandLine, AFolderInPlaceOfAFileCannotBeRead) {
  const RunFolder run;
  const Outcome outcome = train(2, {run.folder().path()});
  EXPECT_EQ(outcome.status, kWrong);
  EXPECT_EQ(count_of(outcome.err, run.folder().path() + ": is a directory"), 1) << outcome.err;
}

TEST(CommandLine, AnEmptyFileIsCalledEmpty) {
  const RunFolder run;
  const Outcome outcome = train(0, {run.folder().write("empty.yaml", "")});
  EXPECT_EQ(outcome.status, kWrong);
  EXPECT_TRUE(outcome.says("the file is empty")) << outcome.err;
}

TEST(CommandLine, AnErrorOfAllRanksIsPrintedOnceUnderMpirun) {
  const RunFolder run;
  const std::vector<std::pair<Words, std::string>> cases{
      {{run.yaml(), "--bogus"}, "unrecognised option"},
      {{run.yaml(), "--plan"}, "not available in this version"},
      {{run.file("none.yaml")}, "no such file"},
  };
  for (const auto& [words, part] : cases) {
    const Outcome outcome = train(3, words);
    EXPECT_EQ(outcome.status, kWrong) << outcome.text();
    EXPECT_EQ(count_of(outcome.err, part), 1) << outcome.err;
    EXPECT_EQ(count_of(outcome.err, "dew_train: "), 1) << outcome.err;
    EXPECT_FALSE(outcome.says("MPI_ABORT")) << outcome.err;
    EXPECT_FALSE(run.exists());
  }
}

TEST(CommandLine, VerifyWritesNothing) {
  const RunFolder run;
  EXPECT_EQ(run.train(0, {}, {"--verify"}).status, 0);
  EXPECT_FALSE(run.exists());
}

}  // namespace
}  // namespace dew::testing
