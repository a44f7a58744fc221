// TERM, INT and USR1: agree, save, exit 75; the run goes on as if nothing had happened.
#include <gtest/gtest.h>

#include <csignal>

#include "system/run_folder.h"

namespace dew::testing {
namespace {

constexpr int kStopped = 75;
const Words kEndless{"run.steps=1000000", "checkpoint.every=0"};

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::int64_t only_checkpoint(const RunFolder& run) {
  const Words names = run.checkpoint_names();
  if (names.size() != 1) return -1;
  return std::stoll(names.front().substr(std::string("step_").size()));
}

/// Continues to some steps more and compares with a run that was never stopped.
void expect_continues(const RunFolder& run, int ranks, const Words& mesh) {
  const std::int64_t stopped = only_checkpoint(run);
  ASSERT_GE(stopped, 2) << "one whole file, and no partial one";
  const Words steps{"run.steps=" + std::to_string(stopped + 3), "checkpoint.every=0"};
  const Outcome second = run.train(ranks, with(mesh, steps), {"--resume=require"});
  ASSERT_EQ(second.status, 0) << second.text();
  const RunFolder whole;
  ASSERT_EQ(whole.train(ranks, with(mesh, steps)).status, 0);
  EXPECT_EQ(difference_of(whole.checkpoint(stopped + 3), run.checkpoint(stopped + 3)), "");
  EXPECT_EQ(whole.losses().back(), run.losses().back());
}

TEST(Signal, OnOneProcessStopsItAfterSaving) {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) {
    const RunFolder run;
    Program program(run.launch(0, kEndless));
    ASSERT_TRUE(program.wait_for("step 2/"));
    program.send(signal);
    const Outcome outcome = program.finish();
    EXPECT_EQ(outcome.status, kStopped) << outcome.text();
    EXPECT_TRUE(outcome.says("stopped on a signal at step")) << outcome.out;
    expect_continues(run, 0, {});
  }
}

TEST(Signal, ToOneRankStopsAllAfterSaving) {
  const Words mesh{"mesh.replica=2", "mesh.fsdp=2"};
  for (const int signal : {SIGUSR1, SIGTERM}) {
    const RunFolder run;
    Program program(run.launch(4, with(mesh, kEndless)));
    ASSERT_TRUE(program.wait_for("step 2/"));
    ASSERT_TRUE(program.send_to_rank(2, signal));
    const Outcome outcome = program.finish();
    EXPECT_EQ(outcome.status, kStopped) << outcome.text();
    EXPECT_EQ(count_of(outcome.out, "stopped on a signal at step"), 1) << outcome.out;
    expect_continues(run, 4, mesh);
  }
}

TEST(Signal, ToMpirunIsForwardedAndStopsAllAfterSaving) {
  const Words mesh{"mesh.fsdp=3"};
  const RunFolder run;
  Program program(run.launch(3, with(mesh, kEndless)));
  ASSERT_TRUE(program.wait_for("step 2/"));
  program.send(SIGUSR1);
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.status, kStopped) << outcome.text();
  expect_continues(run, 3, mesh);
}

// mpirun waits a second, sends TERM, waits another and kills; it ends with a status of its own and may drop
// the last lines. The save must be quick.
void expect_saves_before_mpirun_kills(const std::string& log_every) {
  const Words mesh{"mesh.fsdp=3"};
  const RunFolder run;
  Program program(run.launch(3, with(mesh, with(kEndless, {log_every}))));
  ASSERT_TRUE(program.wait_for("/1000000  loss"));
  program.send(SIGTERM);
  const Outcome outcome = program.finish();
  EXPECT_NE(outcome.status, 0) << outcome.text();
  EXPECT_FALSE(outcome.timed_out);
  expect_continues(run, 3, mesh);
}

TEST(Signal, OfEndToMpirunSavesBeforeItKills) {
  expect_saves_before_mpirun_kills("log.every=100");
}

// In its two seconds of waiting mpirun reads no output: a rank that prints more than a pipe holds must not
// wait for it.
TEST(Signal, OfEndToMpirunSavesWhileOutputIsNotRead) {
  expect_saves_before_mpirun_kills("log.every=1");
}

TEST(RunFolderLock, RefusesASecondRunInTheSameFolder) {
  const RunFolder run;
  Program program(run.launch(0, kEndless));
  ASSERT_TRUE(program.wait_for("step 2/"));
  const Outcome second = run.train(0, kEndless);
  EXPECT_EQ(second.status, 2) << second.text();
  EXPECT_TRUE(second.says("is in use by another run")) << second.text();
  program.send(SIGTERM);
  EXPECT_EQ(program.finish().status, kStopped);
}

}  // namespace
}  // namespace dew::testing
