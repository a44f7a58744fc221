// A wrong run description: exit status 2, path, line, value and what would be accepted, and nothing written.
#include <gtest/gtest.h>

#include <chrono>

#include "base/check.h"
#include "system/run_folder.h"

namespace dew::testing {
namespace {

constexpr int kWrong = 2;

/// The run must be refused with every part, without a trace on the disk.
void expect_refused(const RunFolder& run, int ranks, const Words& assignments, const Words& parts) {
  const Outcome outcome = run.train(ranks, assignments);
  EXPECT_EQ(outcome.status, kWrong) << outcome.text();
  for (const std::string& part : parts)
    EXPECT_EQ(count_of(outcome.err, part), 1) << part << '\n' << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "dew_train: "), 1) << outcome.err;
  EXPECT_TRUE(outcome.out.empty()) << outcome.out;
  EXPECT_FALSE(run.exists());
}

TEST(DescriptionErrors, NamePathLineValueAndNearestKeyAllAtOnce) {
  const RunFolder run(
      "optimizer: {kind: adamw, lr: fast, weight_dekay: 0.1}\n"  // line 7
      "eval:\n"
      "  every: -3\n"  // line 9
      "chekpoint: {every: 2}\n"
      "schedule: {kind: triangle}\n");
  expect_refused(run, 0, {},
                 {"optimizer.lr (line 7): fast: accepted: number",
                  "optimizer.weight_dekay (line 7): unknown key; did you mean optimizer.weight_decay?",
                  "eval.every (line 9): -3: accepted: integer",
                  "chekpoint (line 10): unknown key; did you mean checkpoint?",
                  "schedule.kind (line 11): triangle: accepted: constant, linear or cosine"});
}

TEST(DescriptionErrors, AreWithoutTraceOnThreeRanksToo) {
  expect_refused(RunFolder("eval: {evry: 3}\n"), 3, {"data.seq_len=x"},
                 {"eval.evry (line 7): unknown key; did you mean eval.every?",
                  "data.seq_len (--set): x: accepted: integer"});
}

// What was meant is unknown, so that arithmetic with the default would only mislead.
TEST(DescriptionErrors, AValueOfTheWrongTypeHasOneErrorOnly) {
  expect_refused(RunFolder(), 3, {"data.batch=x"}, {"data.batch"});
  expect_refused(RunFolder(), 0, {"model.heads=3"}, {"model.head_width"});
}

TEST(DescriptionErrors, ASyntaxErrorNamesItsLine) {
  expect_refused(RunFolder("eval: {every: 3\n"), 0, {}, {"line "});
}

TEST(DescriptionErrors, ASizeThatDoesNotFitTheRanksGivesTheNumbers) {
  const RunFolder run("mesh: {fsdp: 2}\n");
  expect_refused(run, 0, {}, {"mesh (line 7): ", "fsdp 2", "does not divide 1 rank"});
  expect_refused(run, 3, {}, {"mesh (line 7): ", "fsdp 2", "does not divide 3 ranks"});
  expect_refused(run, 3, {"mesh.replica=2"}, {"replica 2", "= 4 does not fit 3 ranks"});
}

TEST(DescriptionErrors, ABatchThatDoesNotDivideGivesTheNumbers) {
  const RunFolder run;
  expect_refused(run, 0, {"accumulate=5"},
                 {"data.batch", "12: does not divide by 1 row ranks", "times 5 microbatches"});
  expect_refused(run, 3, {"data.batch=16"},
                 {"data.batch (--set): 16: does not divide by 3 row ranks", "15 or 18"});
}

TEST(DescriptionErrors, DataThatCannotServeAreRefused) {
  const RunFolder run;
  expect_refused(run, 0, {"data.seq_len=1000000"},
                 {"data.seq_len (--set): 1000000: the training data hold ",
                  "data.validation (line 4): 0.1: the validation data hold "});
  expect_refused(run, 0, {"data.sentences=null", "data.text=" + run.file("none.txt")},
                 {"none.txt: No such file"});
  expect_refused(run, 2, {"data.sentences=null", "data.tokens=" + run.file("none")}, {run.file("none")});
  expect_refused(run, 0, {"data.text=" + run.yaml()}, {"text and sentences are given"});
  expect_refused(run, 0, {"data.sentences=null"}, {"no source is given"});
}

TEST(DescriptionErrors, AModelThatDoesNotFitTogetherIsRefused) {
  const RunFolder run;
  expect_refused(run, 0, {"model.heads=3"},
                 {"model.head_width (default): auto: needs a width that divides by the heads, not 16 by 3"});
  expect_refused(run, 0, {"model.heads=4", "model.kv_heads=3"},
                 {"model.kv_heads (--set): 3: must divide the 4 heads"});
  expect_refused(run, 0, {"model.vocab=100"},
                 {"model.vocab (--set): 100: is smaller than the vocabulary of the data"});
  expect_refused(run, 0, {"recompute=[attention.softmax]"}, {"recompute", "unknown site attention.softmax"});
}

TEST(DescriptionErrors, AMachineThatIsTooSmallIsNamedWithTheBytes) {
  expect_refused(RunFolder(), 0, {"model.layers=1000", "model.width=65536", "model.mlp=262144"},
                 {"model", "the run needs", "are free"});
}

TEST(DescriptionErrors, WhatDoesNotWorkYetIsRefusedByName) {
  const RunFolder run;
  const std::vector<std::pair<std::string, std::string>> cases{
      {"mesh.ranks=64", "mesh.ranks"},
      {"layout.offload=[optimizer]", "layout.offload"},
      {"device=cuda", "device.kind"},
      {"transport=nccl", "transport"},
      {"precision.compute=fp8", "precision.compute"},
      {"recompute={save: [attention]}", "recompute"},
      {"recompute=dots", "recompute"},
      {"reproducible=true", "reproducible"},
      {"reproducible={unit: 4}", "reproducible"},
      {"checkpoint.async=true", "checkpoint.async"},
      {"failure.stall=10m", "failure.stall"},
      {"failure.agree=1h", "failure.agree"},
  };
  for (const auto& [assignment, path] : cases) {
    SCOPED_TRACE(assignment);
    const Outcome outcome = run.train(0, {assignment});
    EXPECT_EQ(outcome.status, kWrong) << outcome.text();
    EXPECT_TRUE(outcome.says("\n" + path + " (--set): ") || outcome.says(": " + path + " (--set): "))
        << outcome.err;
    EXPECT_TRUE(outcome.says("available in this version")) << outcome.err;
    EXPECT_FALSE(run.exists());
  }
}

// Files as an editor, a copy or a disk may damage them; the words of the messages are the parser's.
TEST(DescriptionErrors, DamagedFilesAreRefusedInOneBlock) {
  const RunFolder run;
  const std::string whole = read_file(run.yaml());
  const auto with = [&whole](std::string_view part, std::string_view instead) {
    std::string text = whole;
    const std::size_t at = text.find(part);
    DEW_CHECK(at != std::string::npos, std::string(part));
    return text.replace(at, part.size(), instead);
  };
  const std::vector<std::pair<const char*, std::string>> damaged{
      {"cut in a line", whole.substr(0, whole.find("validation"))},
      {"a line twice", whole + "log: {every: 1}\n"},
      {"a byte that is no UTF-8", with("seq_len", "seq\xff_len")},
      {"a number past 64 bits", with("layers: 1", "layers: 9223372036854775808")},
      {"a list for a number", with("steps: 4", "steps: [1, [2, 3]]")},
  };
  for (const auto& [what, text] : damaged) {
    SCOPED_TRACE(what);
    const Outcome outcome = train(2, {run.folder().write("damaged.yaml", text)});
    EXPECT_EQ(outcome.status, kWrong) << outcome.text();
    EXPECT_EQ(count_of(outcome.err, "dew_train: "), 1) << outcome.err;
    EXPECT_TRUE(outcome.says("line ")) << outcome.err;
    EXPECT_TRUE(outcome.out.empty()) << outcome.out;
    EXPECT_FALSE(run.exists());
  }
}

/// Two ranks whose text files hold these many bytes.
Outcome train_on_unequal_texts(const RunFolder& run, std::size_t first, std::size_t last) {
  const auto arguments = [&run](const std::string& name, std::size_t bytes) {
    const std::string text = "data.text=" + run.folder().write(name, std::string(bytes, 'a'));
    return run.launch(1, {"data.sentences=null", text}).arguments;
  };
  Launch launch;
  launch.ranks = 1;
  launch.arguments = arguments("a.txt", first);
  launch.last_rank_arguments = arguments("b.txt", last);
  launch.limit = std::chrono::seconds(20);
  return train(std::move(launch));
}

TEST(DescriptionErrors, DataThatDifferBetweenRanksAreRefused) {
  for (const bool longer_first : {true, false}) {
    const RunFolder run;
    const Outcome outcome =
        train_on_unequal_texts(run, longer_first ? 20000 : 9000, longer_first ? 9000 : 20000);
    EXPECT_EQ(outcome.status, kWrong) << outcome.text();
    EXPECT_TRUE(outcome.says("differs between ranks")) << outcome.err;
    EXPECT_EQ(count_of(outcome.err, "dew_train: "), 1) << outcome.err;
    EXPECT_FALSE(run.exists());
  }
}

// One rank alone sees that its data are too few; the other must not wait for it.
TEST(DescriptionErrors, DataTooShortOnOneRankAreRefusedInTime) {
  for (const bool longer_first : {true, false}) {
    const RunFolder run;
    const Outcome outcome = train_on_unequal_texts(run, longer_first ? 20000 : 9, longer_first ? 9 : 20000);
    EXPECT_FALSE(outcome.timed_out);
    EXPECT_EQ(outcome.status, kWrong) << outcome.text();
    EXPECT_EQ(count_of(outcome.err, "dew_train: "), 1) << outcome.err;
    EXPECT_FALSE(run.exists());
  }
}

TEST(DescriptionErrors, AnAsynchronousCheckpointIsRefusedAndNotMadeSynchronous) {
  expect_refused(RunFolder("checkpoint: {async: true}\n"), 2, {},
                 {"checkpoint.async (line 7): true: not available"});
}

}  // namespace
}  // namespace dew::testing
