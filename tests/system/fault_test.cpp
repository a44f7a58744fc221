// A rank that dies, a rank that throws, a loss that is not finite: a clear end in time, and nothing half
// written.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>

#include "base/text.h"
#include "comm/mpi_env.h"
#include "system/run_folder.h"

namespace dew::testing {
namespace {

constexpr int kFailed = 1;
/// What the contract allows from a fault until every rank has ended.
constexpr std::chrono::seconds kEndsWithin{3};

int matching(const std::string& text, const std::string& a, const std::string& b) {
  int count = 0;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line(text.data() + begin, end - begin);
    if (line.find(a) != std::string_view::npos && line.find(b) != std::string_view::npos) ++count;
    begin = end + 1;
  }
  return count;
}

TEST(Fault, AKilledRankEndsTheRunAndLeavesWholeFilesOnly) {
  const RunFolder run("checkpoint: {every: 5, keep: 3}\n");
  Program program(run.launch(4, {"mesh.fsdp=2", "run.steps=1000000"}));
  ASSERT_TRUE(program.wait_for("step 7/"));
  ASSERT_TRUE(program.send_to_rank(3, SIGKILL));
  const auto killed = std::chrono::steady_clock::now();
  const Outcome outcome = program.finish();
  EXPECT_LT(std::chrono::steady_clock::now() - killed, kEndsWithin);
  EXPECT_NE(outcome.status, 0) << outcome.text();
  EXPECT_FALSE(outcome.timed_out);

  // A partial file may stay, under another name; the run goes on from a whole one.
  for (const std::string& name : run.checkpoint_names()) {
    if (!name.starts_with("step_")) continue;
    EXPECT_FALSE(tensors_of(run.dir() + "/checkpoints/" + name).empty()) << name;
  }
  const std::int64_t last = run.metrics().back()["step"];
  const Words steps{"mesh.fsdp=2", "run.steps=" + std::to_string(last + 6)};
  const Outcome again = run.train(4, steps, {"--resume=require"});
  EXPECT_EQ(again.status, 0) << again.text();
  EXPECT_FALSE(again.says("damaged")) << again.out;
  for (const std::string& name : run.checkpoint_names()) EXPECT_TRUE(name.starts_with("step_")) << name;
  EXPECT_EQ(run.losses().size(), static_cast<std::size_t>(last + 6)) << "each step once";
}

TEST(Fault, ADataFileThatIsCutShortIsNamedAsTheCause) {
  const RunFolder run;
  const std::string text = run.folder().write("text.txt", std::string(1 << 20, 'x'));
  Program program(run.launch(2, {"data.sentences=null", "data.text=[" + text + "]", "mesh.fsdp=2",
                                 "checkpoint.every=0", "run.steps=1000000"}));
  ASSERT_TRUE(program.wait_for("step 2/"));
  std::filesystem::resize_file(text, 0);
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.status, kFailed) << outcome.text();
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_GE(matching(outcome.err, "/2 " + host_name() + "]", "a data file was cut short"), 1)
      << outcome.text();
}

/// 41 windows of 8 ids below 64, and one id beyond the vocabulary inside one window: one rank meets it in
/// some step.
std::string tokens_with_a_bad_one(const RunFolder& run) {
  // So many that the sample which is compared at the start passes over the bad one.
  constexpr std::size_t kTokens = 400 * 256 + 1, kBad = 203, kValidation = 600;
  std::string ids;
  for (std::size_t i = 0; i < kTokens; ++i) {
    ids += static_cast<char>(i == kBad ? 77 : i * 7 % 64);
    ids += '\0';
  }
  run.folder().write("tokens/train.bin", ids);
  run.folder().write("tokens/val.bin", ids.substr(ids.size() - 2 * kValidation));
  run.folder().write("tokens/meta.json",
                     R"({"tokenizer": "none", "vocab_size": 64, "dtype": "uint16", "train_tokens": )" +
                         std::to_string(kTokens) + R"(, "val_tokens": )" + std::to_string(kValidation) +
                         R"(, "eos_id": null})");
  return run.file("tokens");
}

TEST(Fault, AnExceptionOnOneRankIsPrintedOnceWithRankAndHostAndEndsAll) {
  const RunFolder run;
  const Words assignments{"data.sentences=null", "data.tokens=" + tokens_with_a_bad_one(run),
                          "data.seq_len=256",    "data.batch=3",
                          "run.steps=200",       "mesh.fsdp=3"};
  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome = run.train(3, assignments);
  EXPECT_EQ(outcome.status, kFailed) << outcome.text();
  EXPECT_EQ(count_of(outcome.err, "dew_train: "), 1) << outcome.err;
  int named = 0;
  for (int rank = 0; rank < 3; ++rank)
    named += matching(outcome.err, format("[rank %d/3 %s]", rank, host_name().c_str()),
                      "77, but the vocabulary has 64 ids");
  EXPECT_EQ(named, 1) << outcome.err;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10 * kEndsWithin) << "the others do not wait for it";
  EXPECT_EQ(run.checkpoint_names(), Words{});
}

TEST(Fault, ALossThatIsNotFiniteStopsBeforeTheSave) {
  for (const int ranks : {0, 2}) {
    const RunFolder run("checkpoint: {every: 1}\n");
    ASSERT_EQ(run.train(ranks, {"run.steps=3"}).status, 0);
    const std::string before = read_file(run.checkpoint(3));
    const Outcome outcome = run.train(ranks, {"run.steps=9", "optimizer.lr=1e30"});
    EXPECT_EQ(outcome.status, kFailed) << outcome.text();
    EXPECT_EQ(count_of(outcome.err, "dew_train: "), 1) << outcome.err;
    // The first bad update is that of step 4, so that step 5 meets weights that overflow.
    EXPECT_EQ(
        matching(outcome.err, "step 5: ", "is not finite") + matching(outcome.err, "step 5: ", "loss is "), 1)
        << outcome.err;
    EXPECT_EQ(run.checkpoint_names(), (Words{"step_00000003.h5", "step_00000004.h5"}));
    EXPECT_EQ(read_file(run.checkpoint(3)), before);
    EXPECT_EQ(run.losses().size(), 4u) << "the bad step is not logged";
  }
}

TEST(Fault, ANonFiniteGradientNamesItsLeaf) {
  const RunFolder initial;
  ASSERT_EQ(initial.train(0, {"run.steps=0"}).status, 0);
  constexpr std::string_view kParams = "/params/";
  Words sentences;
  for (const StoredTensor& tensor : tensors_of(initial.checkpoint(0)))
    if (tensor.name.starts_with(kParams))
      sentences.push_back("gradient of " + tensor.name.substr(kParams.size()) + " is not finite");
  ASSERT_FALSE(sentences.empty());

  const RunFolder run;
  const Outcome outcome =
      run.train(2, {"mesh.fsdp=2", "model.init_std=1e-22", "optimizer.lr=1e30", "run.steps=9"});
  EXPECT_EQ(outcome.status, kFailed) << outcome.text();
  const auto named = std::count_if(sentences.begin(), sentences.end(),
                                   [&](const std::string& sentence) { return outcome.says(sentence); });
  EXPECT_EQ(named, 1) << outcome.err;
  EXPECT_EQ(run.checkpoint_names(), Words{});
}

// The update can break what loss and gradient did not show yet: such weights must never replace a good
// checkpoint.
TEST(Fault, WeightsThatAreNotFiniteAreNeverSaved) {
  const RunFolder run;
  ASSERT_EQ(run.train(2, {"mesh.fsdp=2"}).status, 0);
  const std::vector<std::string> before = run.checkpoint_names();
  const Outcome outcome = run.train(
      2, {"mesh.fsdp=2", "run.steps=5", "optimizer.lr=1e39", "schedule.warmup=0", "checkpoint.keep=1"});
  EXPECT_EQ(outcome.status, 1) << outcome.text();
  EXPECT_EQ(count_of(outcome.err, "are not finite after the update"), 1) << outcome.err;
  EXPECT_EQ(run.checkpoint_names(), before);
}

}  // namespace
}  // namespace dew::testing
