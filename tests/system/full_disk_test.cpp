// No room for a checkpoint: exit 1 with the reason, and the older ones whole.
#include <gtest/gtest.h>

#include "system/run_folder.h"

namespace dew::testing {
namespace {

// The launcher's own files must still fit (Open MPI's shared memory takes 4 MiB), the checkpoint of 11 MiB
// not.
constexpr std::int64_t kLargestFile = 8 << 20;
const Words kLarge{"model.layers=2", "model.width=192", "model.heads=4", "model.mlp=512"};

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void expect_kept_whole(int ranks, const Words& mesh) {
  const RunFolder run;
  ASSERT_EQ(run.train(ranks, with(kLarge, with(mesh, {"run.steps=1"}))).status, 0);
  const std::string before = read_file(run.checkpoint(1));
  ASSERT_GT(before.size(), static_cast<std::size_t>(kLargestFile));
  Launch launch = run.launch(ranks, with(kLarge, with(mesh, {"run.steps=3"})));
  launch.largest_file = kLargestFile;
  const Outcome outcome = train(launch);
  EXPECT_EQ(outcome.status, 1) << outcome.text();
  EXPECT_EQ(outcome.signal, 0);
  EXPECT_EQ(count_of(outcome.err, "dew_train: "), 1) << outcome.err;
  EXPECT_TRUE(outcome.says("step_00000003.h5 was not saved")) << outcome.err;
  EXPECT_TRUE(outcome.says("File too large")) << outcome.err;
  EXPECT_EQ(run.checkpoint_names(), Words{"step_00000001.h5"}) << "no partial file stays";
  EXPECT_EQ(read_file(run.checkpoint(1)), before);
  EXPECT_EQ(run.train(ranks, with(kLarge, with(mesh, {"run.steps=3"})), {"--resume=require"}).status, 0);
}

TEST(FullDisk, OnOneRank) {
  expect_kept_whole(0, {});
}

TEST(FullDisk, OnTwoRanksThatShareAFile) {
  expect_kept_whole(2, {"mesh.fsdp=2"});
}

TEST(FullDisk, AFolderThatCannotBeMadeIsAWrongDescription) {
  const RunFolder run;
  const std::string file = run.folder().write("occupied", "a file");
  const Outcome outcome = run.train(2, {"run.dir=" + file + "/run"});
  EXPECT_EQ(outcome.status, 2) << outcome.text();
  EXPECT_EQ(count_of(outcome.err, "dew_train: "), 1) << outcome.err;
  EXPECT_TRUE(outcome.says("run.dir")) << outcome.err;
  EXPECT_TRUE(outcome.says(file)) << outcome.err;
}

}  // namespace
}  // namespace dew::testing
