// A run in parts: the same as in one, on the same layout bit by bit, on another one within rounding.
#include <gtest/gtest.h>

#include "system/run_folder.h"

namespace dew::testing {
namespace {

// Sums over ranks in another order move a loss by a few roundings a step; eight small steps amplify them
// little.
constexpr double kF32Distance = 1e-5, kF64Distance = 1e-12;

const char* const kAll =
    "ema: 0.9\nschedule: {kind: cosine, warmup: 2, final: 0.1, steps: 8}\noptimizer: {lr: 0.01, clip: 0.5}\n";
const Words kHybrid{"mesh.replica=2", "mesh.fsdp=2"};

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void expect_halves_equal_the_whole(int ranks, const Words& assignments) {
  const RunFolder whole(kAll), halves(kAll);
  ASSERT_EQ(whole.train(ranks, with(assignments, {"run.steps=8"})).status, 0);
  ASSERT_EQ(halves.train(ranks, with(assignments, {"run.steps=4"})).status, 0);
  const Outcome second = halves.train(ranks, with(assignments, {"run.steps=8"}), {"--resume=require"});
  ASSERT_EQ(second.status, 0) << second.text();
  EXPECT_TRUE(second.says("at step 4")) << second.out;
  EXPECT_EQ(difference_of(whole.checkpoint(8), halves.checkpoint(8)), "");
  EXPECT_EQ(whole.losses(), halves.losses());
}

TEST(Resume, TwoHalvesEqualTheWholeInEveryBitOnOneRank) {
  expect_halves_equal_the_whole(0, {});
}

TEST(Resume, TwoHalvesEqualTheWholeInEveryBitOnFourRanks) {
  expect_halves_equal_the_whole(4, kHybrid);
}

TEST(Resume, TwoHalvesEqualTheWholeInEveryBitWithAccumulation) {
  expect_halves_equal_the_whole(2, {"mesh.fsdp=2", "accumulate=3", "precision.master=f64"});
}

// Seven windows an epoch and twelve rows a step: the second part starts inside an epoch that is not the
// first.
TEST(Resume, GoesOnInsideALaterEpoch) {
  expect_halves_equal_the_whole(0, {"data.sentences=40", "data.seq_len=128", "data.validation=0.3"});
}

void expect_other_layouts_agree(const Words& precision, double distance) {
  const RunFolder whole(kAll), first(kAll);
  ASSERT_EQ(whole.train(4, with(precision, with(kHybrid, {"run.steps=8"}))).status, 0);
  ASSERT_EQ(first.train(4, with(precision, with(kHybrid, {"run.steps=4"}))).status, 0);
  struct Case {
    int ranks;
    Words mesh;
  };
  for (const Case& c :
       {Case{0, {}}, Case{3, {"mesh.fsdp=3", "layout.min_shard=1"}}, Case{2, {"mesh.replica=2"}}}) {
    const RunFolder other(kAll);
    std::filesystem::copy(first.dir(), other.dir(), std::filesystem::copy_options::recursive);
    const Outcome outcome = other.train(c.ranks, with(precision, with(c.mesh, {"run.steps=8"})));
    ASSERT_EQ(outcome.status, 0) << outcome.text();
    EXPECT_LE(relative_distance(other.losses(), whole.losses()), distance) << c.ranks;
  }
}

TEST(Resume, OnOtherRanksAndMeshAgreesInF32) {
  expect_other_layouts_agree({}, kF32Distance);
}

TEST(Resume, OnOtherRanksAndMeshAgreesInF64) {
  expect_other_layouts_agree(f64_with(), kF64Distance);
}

TEST(Resume, DropsMetricsBeyondTheRestoredStep) {
  const RunFolder run("checkpoint: {every: 4}\n");
  ASSERT_EQ(run.train(0, {"run.steps=8"}).status, 0);
  const std::vector<double> before = run.losses();
  std::filesystem::remove(run.checkpoint(8));
  ASSERT_EQ(run.train(0, {"run.steps=8"}).status, 0);
  EXPECT_EQ(run.losses(), before) << "each step once, with the same bits";
  int evaluations = 0, heads = 0;
  for (const auto& line : run.metrics()) {
    evaluations += line.contains("val_loss") ? 1 : 0;
    heads += line.contains("run") ? 1 : 0;
  }
  EXPECT_EQ(evaluations, 1);
  EXPECT_EQ(heads, 2) << "one a part of the run";
}

TEST(Resume, OfAFinishedRunChangesNothing) {
  const RunFolder run;
  ASSERT_EQ(run.train(0).status, 0);
  const std::string checkpoint = read_file(run.checkpoint(4));
  const std::vector<double> losses = run.losses();
  const Outcome again = run.train(0);
  EXPECT_EQ(again.status, 0) << again.text();
  EXPECT_EQ(read_file(run.checkpoint(4)), checkpoint);
  EXPECT_EQ(run.losses(), losses);
}

TEST(Resume, NeverInAFolderThatHoldsARunIsRefusedAndTouchesNothing) {
  const RunFolder run;
  ASSERT_EQ(run.train(0, {}, {"--resume=never"}).status, 0) << "a new folder serves";
  const std::string metrics = read_file(run.dir() + "/metrics.jsonl");
  for (const int ranks : {0, 2}) {
    const Outcome outcome = run.train(ranks, {"run.steps=8"}, {"--resume=never"});
    EXPECT_EQ(outcome.status, 2) << outcome.text();
    EXPECT_EQ(count_of(outcome.err, "dew_train: "), 1) << outcome.err;
    EXPECT_TRUE(outcome.says("never")) << outcome.err;
    EXPECT_TRUE(outcome.says(run.dir())) << outcome.err;
    EXPECT_EQ(read_file(run.dir() + "/metrics.jsonl"), metrics);
  }
}

TEST(Resume, RequireWithoutACheckpointIsRefusedAndWritesNothing) {
  const RunFolder run;
  const Outcome outcome = run.train(2, {}, {"--resume=require"});
  EXPECT_EQ(outcome.status, 2) << outcome.text();
  EXPECT_EQ(count_of(outcome.err, "dew_train: "), 1) << outcome.err;
  EXPECT_TRUE(outcome.says("require")) << outcome.err;
  EXPECT_FALSE(run.exists());
}

void flip_a_bit_of_a_weight(const RunFolder& run, std::int64_t step) {
  std::string bytes = read_file(run.checkpoint(step));
  for (const StoredTensor& tensor : tensors_of(run.checkpoint(step))) {
    if (tensor.name != "/params/embed.weight") continue;
    const std::string stored(reinterpret_cast<const char*>(tensor.bits.data()), tensor.bits.size());
    const std::size_t at = bytes.find(stored);
    ASSERT_NE(at, std::string::npos) << "a dataset lies in one piece";
    bytes[at + 1001] = static_cast<char>(bytes[at + 1001] ^ 1);
  }
  std::filesystem::remove(run.checkpoint(step));
  run.folder().write("run/checkpoints/" + std::filesystem::path(run.checkpoint(step)).filename().string(),
                     bytes);
}

TEST(Resume, PassesOverADamagedFileWithOneLine) {
  const RunFolder whole("checkpoint: {every: 4}\n"), run("checkpoint: {every: 4}\n");
  ASSERT_EQ(whole.train(2, {"run.steps=10", "mesh.fsdp=2"}).status, 0);
  ASSERT_EQ(run.train(2, {"run.steps=8", "mesh.fsdp=2"}).status, 0);
  flip_a_bit_of_a_weight(run, 8);
  const Outcome outcome = run.train(2, {"run.steps=10", "mesh.fsdp=2"});
  ASSERT_EQ(outcome.status, 0) << outcome.text();
  EXPECT_EQ(count_of(outcome.out, "damaged"), 1) << outcome.out;
  EXPECT_TRUE(outcome.says("step_00000004.h5 at step 4")) << outcome.out;
  EXPECT_EQ(difference_of(whole.checkpoint(10), run.checkpoint(10)), "");
  EXPECT_EQ(whole.losses(), run.losses());
}

TEST(Resume, WithEveryFileDamagedFailsAndKeepsThem) {
  const RunFolder run;
  ASSERT_EQ(run.train(0).status, 0);
  const std::string bytes = read_file(run.checkpoint(4)).substr(0, 1000);
  run.folder().write("run/checkpoints/step_00000004.h5", bytes);
  const Outcome outcome = run.train(2, {"run.steps=8"});
  EXPECT_EQ(outcome.status, 1) << outcome.text();
  EXPECT_TRUE(outcome.says("step_00000004.h5")) << outcome.text();
  EXPECT_EQ(run.checkpoint_names(), Words{"step_00000004.h5.damaged"});
}

TEST(Resume, OfAnotherModelNamesDatasetAndShapes) {
  const RunFolder run;
  ASSERT_EQ(run.train(0).status, 0);
  const Outcome outcome = run.train(0, {"run.steps=8", "model.mlp=48"});
  EXPECT_EQ(outcome.status, 1) << outcome.text();
  for (const char* part : {"layers.0.mlp", "32", "48"})
    EXPECT_TRUE(outcome.says(part)) << part << '\n' << outcome.err;
}

TEST(Resume, TellsSettingsThatChangedAndBearOnLearning) {
  const RunFolder run;
  ASSERT_EQ(run.train(0).status, 0);
  const Outcome outcome =
      run.train(0, {"run.steps=6", "model.rope_theta=500", "model.dropout=0.1", "log.every=2"});
  ASSERT_EQ(outcome.status, 0) << outcome.text();
  for (const char* change :
       {"run.steps 6 (was 4)", "model.rope_theta 500 (was 10000)", "model.dropout 0.1 (was 0)"})
    EXPECT_TRUE(outcome.says("changed since the checkpoint: " + std::string(change) + "\n")) << outcome.out;
  EXPECT_EQ(count_of(outcome.out, "changed since"), 3) << outcome.out;
  EXPECT_EQ(count_of(run.train(0, {"run.steps=6", "model.rope_theta=500", "model.dropout=0.1"}).out,
                     "changed since"),
            0);
}

TEST(Resume, StartsAMovingAverageThatIsSwitchedOn) {
  const RunFolder run, plain;
  ASSERT_EQ(run.train(2, {"mesh.fsdp=2"}).status, 0);
  const Outcome outcome = run.train(2, {"mesh.fsdp=2", "run.steps=8", "ema=0.5"});
  ASSERT_EQ(outcome.status, 0) << outcome.text();
  EXPECT_EQ(count_of(outcome.out, "no moving average"), 1) << outcome.out;
  EXPECT_TRUE(Hdf5File::open(run.checkpoint(8)).has("/ema/embed.weight"));
  ASSERT_EQ(plain.train(2, {"mesh.fsdp=2", "run.steps=8"}).status, 0);
  EXPECT_EQ(run.losses(), plain.losses()) << "the average steers nothing";
}

}  // namespace
}  // namespace dew::testing
