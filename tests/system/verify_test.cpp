// --verify: every mesh and policy against the same steps whole on one rank, by the bounds that the program
// states.
#include <gtest/gtest.h>

#include <csignal>

#include "system/run_folder.h"

namespace dew::testing {
namespace {

struct Case {
  const char* name;
  int ranks;  ///< 0: one process
  Words assignments;
  bool f64 = true;
};

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for this name
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

std::string name_of_case(const ::testing::TestParamInfo<Case>& tested) {
  return tested.param.name;
}

class Verify : public ::testing::TestWithParam<Case> {};

TEST_P(Verify, AgreesWithOneRank) {
  const Case& c = GetParam();
  const RunFolder run("optimizer: {lr: 0.01, clip: 0.5}\nmesh: {replica: 1}\n");
  const Words assignments = c.f64 ? f64_with(c.assignments) : c.assignments;
  const Outcome outcome = run.train(c.ranks, assignments, {"--verify=3"});
  EXPECT_EQ(outcome.status, 0) << outcome.text();
  EXPECT_TRUE(outcome.says(" leaves compared, 0 failed")) << outcome.text();
  EXPECT_TRUE(outcome.says("gradient")) << outcome.text();
  EXPECT_FALSE(run.exists());
}

TEST(VerifySignal, EndsAComparisonAtOnce) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const RunFolder run;
    Program program(run.launch(0, {"accumulate=2"}, {"--verify=1000"}));
    ASSERT_TRUE(program.wait_for("comparing"));
    program.send(signal);
    const Outcome outcome = program.finish();
    EXPECT_EQ(outcome.signal, signal) << outcome.text();
    EXPECT_FALSE(outcome.timed_out);
  }
}

std::vector<Case> cases() {
  std::vector<Case> all{
      {"Replica2", 2, {"mesh.replica=2"}},
      {"Replica3", 3, {"mesh.replica=3"}},
      {"Fsdp2", 2, {"mesh.fsdp=2"}},
      {"Fsdp3", 3, {"mesh.fsdp=3"}},
      {"Fsdp4", 4, {"mesh.fsdp=4"}},
      {"Replica2Fsdp2", 4, {"mesh.replica=2", "mesh.fsdp=2"}},
      {"Fsdp2OutsideReplica2",
       4,
       {"mesh.replica=2", "mesh.fsdp=2", "mesh.order=[stage, fsdp, replica, expert, sequence, tensor]"}},
      {"Accumulate3", 0, {"accumulate=3"}},
      {"Accumulate3OnTwoReplicas", 2, {"mesh.replica=2", "accumulate=3"}},
      {"ReduceEachMicrobatch", 2, {"mesh.fsdp=2", "accumulate=2", "layout.reduce=microbatch"}},
      {"ReduceEachMicrobatchOfTwoReplicas",
       4,
       {"mesh.replica=2", "mesh.fsdp=2", "accumulate=3", "layout.reduce=microbatch"}},
      {"RecomputeFull", 2, {"mesh.fsdp=2", "recompute=full"}},
      {"TiedHead", 2, {"mesh.fsdp=2", "model.tied=true"}},
      {"TiedHeadRecomputedAndAccumulated",
       4,
       {"mesh.replica=2", "mesh.fsdp=2", "model.tied=true", "recompute=full", "accumulate=3"}},
      {"GroupedHeads", 3, {"mesh.fsdp=3", "model.heads=4", "model.kv_heads=2"}},
      {"WindowsByLayer", 2, {"mesh.fsdp=2", "model.layers=2", "model.window=[5, 0]"}},
      {"MovingAverage", 2, {"mesh.fsdp=2", "ema=0.9"}},
      {"EverythingSharded", 3, {"mesh.fsdp=3", "layout.min_shard=1"}},
      {"NothingSharded", 3, {"mesh.fsdp=3", "layout.min_shard=1000000000"}},
      {"WarmUpAndCosine", 2, {"mesh.fsdp=2", "schedule.kind=cosine", "schedule.warmup=2"}},
      {"ChunkedHeadThatDoesNotDivide", 2, {"mesh.fsdp=2", "model.head_chunk=37"}},
      {"F32Fsdp2", 2, {"mesh.fsdp=2"}, false},
      {"F32Replica2Fsdp2", 4, {"mesh.replica=2", "mesh.fsdp=2", "accumulate=3"}, false},
      {"ComputeF32MasterF64ReduceF64",
       2,
       {"mesh.fsdp=2", "precision.master=f64", "precision.reduce=f64"},
       false},
      {"ComputeF32MasterF32ReduceF64", 2, {"mesh.fsdp=2", "precision.reduce=f64"}, false},
      {"ComputeF32MasterF64ReduceF32", 2, {"mesh.replica=2", "precision.master=f64"}, false},
  };
  return all;
}

INSTANTIATE_TEST_SUITE_P(Layouts, Verify, ::testing::ValuesIn(cases()), name_of_case);

INSTANTIATE_TEST_SUITE_P(
    RecomputedSites, Verify,
    ::testing::Values(Case{"Attention", 2, {"mesh.fsdp=2", "recompute=[attention]"}},
                      Case{"Qkv", 2, {"mesh.fsdp=2", "recompute=[qkv]"}},
                      Case{"Mlp", 2, {"mesh.fsdp=2", "recompute=[mlp]"}},
                      Case{"MlpHidden", 2, {"mesh.fsdp=2", "recompute=[mlp_hidden]"}},
                      Case{"AllOfThem", 3, {"mesh.fsdp=3", "recompute=[attention, qkv, mlp, mlp_hidden]"}}),
    name_of_case);

// A comparison that compares nothing would pass everywhere: every parameter and both scalars of each step are
// in it.
TEST(VerifyTable, ComparesEveryLeafOfEveryStep) {
  const RunFolder run;
  constexpr int kParameters = 12;  // one layer: 9, and embedding, last norm and head
  for (const int steps : {1, 3}) {
    const Outcome outcome = run.train(0, f64_with(), {"--verify=" + std::to_string(steps)});
    const int leaves = kParameters + steps * (2 * kParameters + 2);
    EXPECT_TRUE(outcome.says("\n" + std::to_string(leaves) + " leaves compared") ||
                outcome.says(std::to_string(leaves) + " leaves compared, 0 failed"))
        << outcome.out;
  }
}

// Each format is judged by its own: rounding to f32 between ranks is no fault where f32 is asked for.
TEST(VerifyTable, JudgesEveryMixOfPrecisions) {
  for (const char* compute : {"f32", "f64"}) {
    for (const char* master : {"f32", "f64"}) {
      for (const char* reduce : {"f32", "f64"}) {
        const RunFolder run;
        const Outcome outcome =
            run.train(2,
                      {"mesh.fsdp=2", std::string("precision.compute=") + compute,
                       std::string("precision.master=") + master, std::string("precision.reduce=") + reduce},
                      {"--verify=2"});
        EXPECT_EQ(outcome.status, 0) << compute << master << reduce << outcome.text();
      }
    }
  }
}

}  // namespace
}  // namespace dew::testing
