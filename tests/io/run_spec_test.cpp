#include "io/run_spec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "comm/axis.h"
#include "io/config_cases.h"

namespace dew {
namespace {

using namespace config_cases;

const std::string kLeast = "model: {}\ndata: {sentences: 100}\n";

struct Outcome {
  RunSpec spec;
  Messages errors;
  std::string resolved;
  std::vector<KeyRow> table;
};

Outcome read(const std::string& text, const std::vector<std::string>& overrides = {}) {
  Config config = Config::from_text(text, "run.yaml");
  for (const std::string& assignment : overrides) config.set(assignment);
  Outcome outcome;
  outcome.spec = read_run_spec(config.root());
  config.root().section({"model", "", ""});
  outcome.errors = errors_of([&] { config.throw_errors(); });
  outcome.resolved = config.resolved();
  outcome.table = config.table();
  return outcome;
}

/// The errors of the least description with these overrides.
Messages errors_with(const std::vector<std::string>& overrides) {
  return read(kLeast, overrides).errors;
}

TEST(RunSpec, HasADefaultForAllButModelAndData) {
  const Outcome outcome = read(kLeast);
  const RunSpec& spec = outcome.spec;

  EXPECT_EQ(outcome.errors, Messages{});
  EXPECT_EQ(spec.run.name, "run");
  EXPECT_EQ(spec.run.dir, "runs/run");
  EXPECT_EQ(spec.run.steps, 1000);
  EXPECT_EQ(spec.run.seed, 0u);
  EXPECT_EQ(spec.mesh.extent[0], std::nullopt);
  for (int i = 1; i < kAxisCount; ++i) EXPECT_EQ(spec.mesh.extent[static_cast<std::size_t>(i)], 1);
  EXPECT_EQ(spec.mesh.order, kAllAxes);
  EXPECT_EQ(spec.mesh.across_nodes, (AxisSet{Axis::kReplica, Axis::kStage, Axis::kFsdp}));
  EXPECT_EQ(spec.nodes, std::nullopt);
  EXPECT_EQ(spec.layout.min_shard, 65536);
  EXPECT_EQ(spec.layout.tolerance, 0.02);
  EXPECT_EQ(spec.precision.compute, DType::kF32);
  EXPECT_FALSE(spec.recompute.full);
  EXPECT_EQ(spec.optimizer.lr, 1e-3);
  EXPECT_EQ(spec.optimizer.beta1, 0.9);
  EXPECT_EQ(spec.optimizer.beta2, 0.999);
  EXPECT_EQ(spec.optimizer.eps, 1e-8);
  EXPECT_EQ(spec.optimizer.weight_decay, 0.01);
  EXPECT_EQ(spec.optimizer.clip, std::nullopt);
  EXPECT_EQ(spec.accumulate, 1);
  EXPECT_EQ(spec.ema, std::nullopt);
  EXPECT_EQ(spec.checkpoint.every_steps, 1000);
  EXPECT_EQ(spec.checkpoint.resume, ResumeMode::kAuto);
  EXPECT_EQ(spec.eval.batches, std::nullopt);
  EXPECT_EQ(spec.peak_flops, std::nullopt);
}

TEST(RunSpec, ReadsTheExampleOfTheContract) {
  const Outcome outcome = read(R"(
run:      {name: quickstart, dir: runs/quickstart, steps: 300, seed: 3}
mesh: {replica: auto, stage: 1, fsdp: 2, expert: 1, sequence: 1, tensor: 1,
       order: [replica, stage, fsdp, expert, tensor, sequence], across_nodes: [replica]}
topology: {nodes: 2}
pipeline: {schedule: 1f1b, microbatches: 4, layers: auto}
layout: {min_shard: 64, tolerance: 0.5, reduce: microbatch, rules: {heads: [tensor, fsdp]}, offload: []}
device: cpu
transport: mpi
precision: {compute: f64, master: f64, reduce: f32}
recompute: [norm, mlp]
reproducible: false
model: {}
data:     {text: [a.txt, b.txt], seq_len: 32, batch: 12, validation: 0.2}
optimizer: {kind: adamw, lr: 2e-3, betas: [0.8, 0.95], eps: 1e-6, weight_decay: 0.1, clip: 1.0}
schedule: {kind: cosine, warmup: 20, final: 0.1, steps: 200}
accumulate: 3
ema: 0.99
checkpoint: {every: 10m, keep: 4, async: false, resume: require}
eval:     {every: 100, batches: 8}
log:      {every: 5}
failure:  {stall: 1800s, agree: 24h}
)");
  const RunSpec& spec = outcome.spec;

  EXPECT_EQ(outcome.errors, Messages{});
  EXPECT_EQ(spec.run.seed, 3u);
  EXPECT_EQ(spec.mesh.extent[2], 2);
  EXPECT_EQ(spec.mesh.order[4], Axis::kTensor);
  EXPECT_EQ(spec.mesh.across_nodes, AxisSet{Axis::kReplica});
  EXPECT_EQ(spec.nodes, 2);
  EXPECT_EQ(spec.layout.reduce, ReduceWhen::kMicrobatch);
  EXPECT_EQ(spec.layout.rules.at("heads"), (std::vector<Axis>{Axis::kTensor, Axis::kFsdp}));
  EXPECT_EQ(spec.precision.compute, DType::kF64);
  EXPECT_EQ(spec.precision.master, DType::kF64);
  EXPECT_EQ(spec.precision.reduce, DType::kF32);
  EXPECT_EQ(spec.recompute.sites, (std::vector<std::string>{"norm", "mlp"}));
  EXPECT_EQ(spec.data.text, (std::vector<std::string>{"a.txt", "b.txt"}));
  EXPECT_EQ(spec.data.validation, 0.2);
  EXPECT_EQ(spec.optimizer.clip, 1.0);
  EXPECT_EQ(spec.schedule.kind, ScheduleKind::kCosine);
  EXPECT_EQ(spec.schedule.final_share, 0.1);
  EXPECT_EQ(spec.schedule.steps, 200);
  EXPECT_EQ(spec.ema, 0.99);
  EXPECT_EQ(spec.checkpoint.every_steps, std::nullopt);
  EXPECT_EQ(spec.checkpoint.every_seconds, 600.0);
  EXPECT_EQ(spec.checkpoint.resume, ResumeMode::kRequire);
  EXPECT_EQ(spec.eval.batches, 8);
  EXPECT_EQ(spec.log_every, 5);
}

TEST(RunSpec, ResolvedReadsBackToItself) {
  for (const std::vector<std::string>& overrides :
       {Messages{}, Messages{"mesh.fsdp=auto"}, Messages{"device=cpu", "device.peak=1e9"},
        Messages{"recompute=[norm]"},
        Messages{"recompute=full", "checkpoint.every=90s", "ema=0.9", "data={text: a b.txt}"}}) {
    const Outcome first = read(kLeast, overrides);
    const Outcome second = read(first.resolved);

    EXPECT_EQ(first.errors, Messages{});
    EXPECT_EQ(second.errors, Messages{});
    EXPECT_EQ(second.resolved, first.resolved);
  }
  EXPECT_NE(read(kLeast, {"device=cpu"}).resolved.find("device:\n  kind: cpu\n  peak: null\n"),
            std::string::npos);
}

TEST(RunSpec, RequiresModelAndData) {
  const Messages errors = read("run: {steps: 3}\n").errors;

  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0].find("model: required"), 0u) << errors[0];
  EXPECT_EQ(errors[1].find("data: required"), 0u) << errors[1];
}

TEST(RunSpec, WantsExactlyOneSource) {
  const Messages both = errors_with({"data.text=[a]"});
  const Messages none = errors_with({"data.sentences=null"});

  ASSERT_EQ(both.size(), 1u);
  EXPECT_EQ(both[0].find("data (line 2): text and sentences are given; accepted: exactly one"), 0u)
      << both[0];
  ASSERT_EQ(none.size(), 1u);
  EXPECT_EQ(none[0].find("data (line 2): no source is given"), 0u) << none[0];
  EXPECT_EQ(errors_with({"data.sentences=null", "data.tokens=data/tiny"}), Messages{});
}

TEST(RunSpec, RefusesByNameWhatDoesNotWorkYet) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"mesh.ranks=64",
       "mesh.ranks (--set): 64: is for --plan alone, which is not available in this version; accepted: null"},
      {"pipeline.schedule=dualpipe",
       "pipeline.schedule (--set): dualpipe: accepted: gpipe, 1f1b, interleaved or zero_bubble"},
      {"pipeline.microbatches=0", "pipeline.microbatches (--set): 0: accepted: integer, 1 to 65536"},
      {"pipeline.layers=[1, x]",
       "pipeline.layers (--set): [1, x]: \"x\" is no count; accepted: auto or a list of counts"},
      {"sequence_exchange=rings",
       "sequence_exchange (--set): rings: accepted: auto, measured, all_to_all, gather, band or ring"},
      {"layout.offload=[ema]", "layout.offload (--set): [ema]: not available in this version; accepted: []"},
      {"device=cuda", "device.kind (--set): cuda: not available in this version; accepted: auto or cpu"},
      {"transport=nccl", "transport (--set): nccl: not available in this version; accepted: auto or mpi"},
      {"precision.compute=int8",
       "precision.compute (--set): int8: not available in this version; accepted: f64, f32 or bf16"},
      {"recompute=thrifty",
       "recompute (--set): thrifty: policy names are not available in this version; accepted: none, full or "
       "a list of sites"},
      {"recompute={save: [a]}",
       "recompute (--set): {save: [a]}: not available in this version; accepted: none, full or a list of "
       "sites"},
      {"reproducible=true", "reproducible (--set): true: not available in this version; accepted: false"},
      {"reproducible={unit: 4}",
       "reproducible (--set): {unit: 4}: not available in this version; accepted: false"},
      {"checkpoint.async=true",
       "checkpoint.async (--set): true: not available in this version; accepted: false"},
      {"failure.stall=5m", "failure.stall (--set): 5m: not available in this version; accepted: 30m"},
      {"failure.agree=5m", "failure.agree (--set): 5m: not available in this version; accepted: 24h"},
      {"optimizer.kind=sgd", "optimizer.kind (--set): sgd: accepted: adamw"},
  };
  for (const auto& [assignment, message] : cases) EXPECT_EQ(errors_with({assignment}), Messages{message});
}

TEST(RunSpec, RefusesValuesOutOfRange) {
  for (const char* assignment : {"run.steps=-1",
                                 "run.seed=-1",
                                 "run.seed=9223372036854775808",
                                 "run.name=\"\"",
                                 "run.dir=\"\"",
                                 "mesh.fsdp=0",
                                 "mesh.fsdp=1.0",
                                 "mesh.order=[replica, fsdp]",
                                 "topology.nodes=0",
                                 "layout.min_shard=-1",
                                 "layout.tolerance=1.5",
                                 "layout.reduce=never",
                                 "device.peak=0",
                                 "precision.master=bf16",
                                 "data.batch=0",
                                 "data.batch=4611686018427387904",
                                 "data.seq_len=0",
                                 "data.sentences=9000000000000",
                                 "data.validation=1",
                                 "optimizer.lr=-1",
                                 "optimizer.eps=0",
                                 "optimizer.betas=[0.9, 1]",
                                 "optimizer.betas=[0.9]",
                                 "optimizer.clip=0",
                                 "schedule.final=2",
                                 "schedule.steps=0",
                                 "accumulate=0",
                                 "ema=1",
                                 "ema=0",
                                 "checkpoint.keep=0",
                                 "checkpoint.every=-5",
                                 "checkpoint.every=0s",
                                 "eval.every=-1",
                                 "eval.batches=0",
                                 "log.every=0",
                                 "layout.rules={heads: [tensr]}",
                                 "layout.rules=[a]"}) {
    const Messages errors = errors_with({assignment});
    const std::string path = std::string(assignment).substr(0, std::string(assignment).find('='));

    const bool named = std::any_of(errors.begin(), errors.end(), [&](const std::string& error) {
      return error.find(path) == 0 && error.find("accepted: ") != std::string::npos;
    });
    EXPECT_TRUE(named) << assignment;
  }
}

TEST(RunSpec, RefusesMoreTokensThanCanBeCounted) {
  const Messages errors =
      errors_with({"run.steps=4611686018427387904", "data.batch=2147483647", "data.seq_len=2147483647"});

  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].find("run.steps (--set): 4611686018427387904: times data.batch 2147483647"), 0u)
      << errors[0];
}

TEST(RunSpec, BoundsTheWarmupByTheHorizon) {
  EXPECT_EQ(errors_with({"schedule.warmup=20", "run.steps=10"}),
            Messages{"schedule.warmup (--set): 20: longer than the horizon of 10 steps; accepted: 0 to 10"});
  EXPECT_EQ(errors_with({"schedule.warmup=20", "run.steps=10", "schedule.steps=20"}), Messages{});
  EXPECT_EQ(errors_with({"schedule.warmup=20", "run.steps=0"}), Messages{});
}

TEST(RunSpec, NamesTheNearestAxis) {
  EXPECT_EQ(
      errors_with({"layout.rules={heads: [tensr]}"}),
      Messages{
          "layout.rules.heads (--set): [tensr]: \"tensr\" is no mesh axis; did you mean tensor? accepted: "
          "replica, stage, fsdp, expert, sequence and tensor"});
  EXPECT_EQ(errors_with({"mesh.across_nodes=[fsdp, fsdp]"}),
            Messages{"mesh.across_nodes (--set): [fsdp, fsdp]: fsdp comes twice; accepted: each axis once"});
}

TEST(RunSpec, GivesEveryKeyAMeaning) {
  std::set<std::string> paths;
  for (const KeyRow& row : read(kLeast).table) {
    EXPECT_FALSE(row.meaning.empty()) << row.path;
    EXPECT_FALSE(row.type.empty()) << row.path;
    EXPECT_TRUE(paths.insert(row.path).second) << row.path;
  }
  for (const char* path : {"run.name",
                           "run.dir",
                           "run.steps",
                           "run.seed",
                           "mesh.replica",
                           "mesh.stage",
                           "mesh.fsdp",
                           "mesh.expert",
                           "mesh.sequence",
                           "mesh.tensor",
                           "mesh.order",
                           "mesh.across_nodes",
                           "mesh.ranks",
                           "topology.nodes",
                           "pipeline.schedule",
                           "pipeline.microbatches",
                           "pipeline.chunks",
                           "pipeline.layers",
                           "sequence_exchange",
                           "layout.min_shard",
                           "layout.tolerance",
                           "layout.reduce",
                           "layout.rules",
                           "layout.offload",
                           "device.kind",
                           "device.peak",
                           "transport",
                           "precision.compute",
                           "precision.master",
                           "precision.reduce",
                           "recompute",
                           "reproducible",
                           "data.tokens",
                           "data.text",
                           "data.sentences",
                           "data.seq_len",
                           "data.batch",
                           "data.validation",
                           "optimizer.kind",
                           "optimizer.lr",
                           "optimizer.betas",
                           "optimizer.eps",
                           "optimizer.weight_decay",
                           "optimizer.clip",
                           "schedule.kind",
                           "schedule.warmup",
                           "schedule.final",
                           "schedule.steps",
                           "accumulate",
                           "ema",
                           "checkpoint.every",
                           "checkpoint.keep",
                           "checkpoint.async",
                           "checkpoint.resume",
                           "eval.every",
                           "eval.batches",
                           "log.every",
                           "failure.stall",
                           "failure.agree",
                           "failure.check_calls"}) {
    EXPECT_TRUE(paths.contains(path)) << path;
  }
}

}  // namespace
}  // namespace dew
