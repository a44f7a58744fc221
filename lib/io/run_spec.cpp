#include "io/run_spec.h"

#include <array>
#include <limits>
#include <utility>

#include "base/text.h"
#include "io/run_spec_words.h"

namespace dew {
namespace {

constexpr std::int64_t kInt32Max =
    std::numeric_limits<std::int32_t>::max();        // rows and positions travel as int32
constexpr std::int64_t kMaxSentences = 100'000'000;  // a few GB of text in memory

RunSection read_run(ConfigSection root) {
  ConfigSection s = root.section({"run", "", "the run and its folder"});
  RunSection run;
  run.name = s.text({"name", "", "name of the run, for people"}, "run");
  run.dir =
      s.text({"dir", "", "folder of the run's files; by default runs/ and the name"}, "runs/" + run.name);
  run.steps = s.integer({"steps", "optimizer steps", "the total to finish at; 0 writes the initial state"},
                        1000, {.low = 0});
  run.seed = static_cast<std::uint64_t>(s.integer(
      {"seed", "", "seed of the initial weights, the order of the data and dropout"}, 0, {.low = 0}));
  if (run.name.empty()) s.error("name", "accepted: a text that is not empty");
  if (run.dir.empty()) s.error("dir", "accepted: a folder");
  return run;
}

LayoutSection read_layout(ConfigSection root) {
  ConfigSection s = root.section({"layout", "", "how parameters lie on the mesh"});
  LayoutSection layout;
  layout.min_shard = s.integer({"min_shard", "elements", "smaller parameters stay whole on every rank"},
                               layout.min_shard, {.low = 0});
  layout.tolerance =
      s.real({"tolerance", "share of elements",
              "how much of the parameters of at least min_shard elements rules may keep whole before "
              "the run is refused"},
             layout.tolerance, {.low = 0, .high = 1});
  constexpr std::array<std::string_view, 2> kReduce{"step", "microbatch"};
  const std::string reduce =
      s.choice({"reduce", "",
                "when unreduced gradients are summed over ranks: once a step (less traffic) or after each "
                "microbatch (less memory)"},
               "step", kReduce);
  layout.reduce = reduce == "step" ? ReduceWhen::kStep : ReduceWhen::kMicrobatch;
  for (const auto& [logical, words] :
       s.text_lists({"rules", "", "logical axis: mesh axes, over the default table of the family"})) {
    layout.rules[logical] = axes_of(s, "rules." + logical, words);
  }
  const std::vector<std::string> offload =
      s.texts({"offload", "", "state kept in host memory between uses; not available in this version"}, {});
  if (!offload.empty()) refuse(s, "offload", "[]");
  return layout;
}

DType dtype_named(const std::string& word) {
  return word == "f64" ? DType::kF64 : word == "bf16" ? DType::kBf16 : DType::kF32;
}

PrecisionSection read_precision(ConfigSection root) {
  ConfigSection s = root.section({"precision", "", "number formats"});
  constexpr std::array<std::string_view, 5> kCompute{"f64", "f32", "bf16", "fp8", "int8"};
  constexpr std::array<std::string_view, 2> kFloats{"f64", "f32"};
  PrecisionSection precision;
  const std::string compute = s.choice(
      {"compute", "",
       "format of activations and products (bf16 sums in f32); fp8 and int8 are not available in this "
       "version"},
      "f32", kCompute);
  if (compute == "fp8" || compute == "int8") refuse(s, "compute", "f64, f32 or bf16");
  precision.compute = dtype_named(compute);
  precision.master = dtype_named(
      s.choice({"master", "", "format of stored weights and of the optimizer's state"}, "f32", kFloats));
  precision.reduce =
      dtype_named(s.choice({"reduce", "", "format in which gradients are summed"}, "f32", kFloats));
  return precision;
}

RecomputeSection read_recompute(ConfigSection root) {
  RecomputeSection recompute;
  if (root.is_mapping("recompute")) {
    refuse(root, "recompute", "none, full or a list of sites");
    return recompute;
  }
  const ConfigSection::WordOrTexts given = root.word_or_texts(
      {"recompute", "",
       "what the forward pass drops and the backward pass runs again: nothing, whole blocks, or the "
       "named sites of the family"},
      "none", "none, full or a list of sites");
  recompute.full = given.word == "full";
  recompute.sites = given.texts;
  if (!given.word.empty() && given.word != "none" && given.word != "full") {
    root.error("recompute",
               "policy names are not available in this version; accepted: none, full or a list of sites");
  }
  return recompute;
}

/// Exactly one of the three sources.
void check_source(ConfigSection root, const DataSection& data) {
  std::string given;
  int count = 0;
  const auto add = [&](bool is_given, const char* name) {
    if (!is_given) return;
    given += (count == 0 ? "" : " and ") + std::string(name);
    ++count;
  };
  add(!data.tokens.empty(), "tokens");
  add(!data.text.empty(), "text");
  add(data.sentences > 0, "sentences");
  const std::string accepted =
      "accepted: exactly one of tokens (a token directory), text (files) and sentences (a "
      "count of generated sentences)";
  if (count == 0) root.error("data", "no source is given; " + accepted);
  if (count > 1) root.error("data", given + " are given; " + accepted);
}

DataSection read_data(ConfigSection root) {
  const bool given = root.has("data");
  if (!given) root.error("data", "required; such as data: {sentences: 4000, seq_len: 32, batch: 16}");
  ConfigSection s = root.section({"data", "", "the tokens to train on"});
  DataSection data;
  data.tokens =
      s.text_or({"tokens", "", "directory with train.bin, val.bin and meta.json"}, "null", std::nullopt)
          .value_or("");
  data.text = s.texts({"text", "", "files read as bytes, one after the other"}, {});
  data.sentences = s.integer_or({"sentences", "sentences", "how many short sentences to generate"}, "null",
                                std::nullopt, {.low = 1, .high = kMaxSentences})
                       .value_or(0);
  data.seq_len = s.integer({"seq_len", "tokens", "positions of a row; a window is one token longer"}, 128,
                           {.low = 1, .high = kInt32Max});
  data.batch = s.integer({"batch", "rows", "rows of a step over all ranks and microbatches"}, 16,
                         {.low = 1, .high = kInt32Max});
  data.validation =
      s.real({"validation", "share of tokens", "the last part of text and sentences, kept for validation"},
             data.validation, {.low = 0, .high = 1, .high_open = true});
  constexpr std::array<std::string_view, 3> kPacks{"auto", "documents", "windows"};
  const std::string pack =
      s.choice({"pack", "",
                "rows of the token line: documents end at eos_id, and attention, positions and targets begin "
                "anew behind it; windows are read across; auto: documents where meta.json names an eos_id"},
               "auto", kPacks);
  if (pack != "auto") data.documents = pack == "documents";
  if (given) check_source(root, data);
  return data;
}

OptimizerSection read_optimizer(ConfigSection root) {
  ConfigSection s = root.section({"optimizer", "", "how weights are updated"});
  OptimizerSection optimizer;
  constexpr std::array<std::string_view, 1> kKinds{"adamw"};
  s.choice({"kind", "", "adamw: decay apart from the gradient, on parameters of two dimensions or more"},
           "adamw", kKinds);
  optimizer.lr = s.real({"lr", "", "learning rate at the top of the schedule"}, optimizer.lr, {.low = 0});
  const std::vector<double> betas =
      s.reals({"betas", "", "decay of the running mean of the gradient and of its square, a step"},
              {optimizer.beta1, optimizer.beta2}, 2, {.low = 0, .high = 1, .high_open = true});
  optimizer.beta1 = betas[0];
  optimizer.beta2 = betas[1];
  optimizer.eps = s.real({"eps", "", "added to the root of the mean square"}, optimizer.eps,
                         {.low = 0, .low_open = true});
  optimizer.weight_decay =
      s.real({"weight_decay", "", "share of a weight taken off a step, times the learning rate"},
             optimizer.weight_decay, {.low = 0});
  optimizer.clip = s.real_or({"clip", "", "largest global gradient norm; larger ones are scaled down to it"},
                             "null", optimizer.clip, {.low = 0, .low_open = true});
  return optimizer;
}

ScheduleSection read_schedule(ConfigSection root, std::int64_t run_steps) {
  ConfigSection s = root.section({"schedule", "", "the learning rate over the steps"});
  ScheduleSection schedule;
  constexpr std::array<std::string_view, 3> kKinds{"constant", "linear", "cosine"};
  const std::string kind = s.choice({"kind", "", "shape of the fall after the warm-up"}, "constant", kKinds);
  schedule.kind = kind == "constant" ? ScheduleKind::kConstant
                  : kind == "linear" ? ScheduleKind::kLinear
                                     : ScheduleKind::kCosine;
  schedule.warmup =
      s.integer({"warmup", "steps", "steps of linear rise from 0"}, schedule.warmup, {.low = 0});
  schedule.final_share = s.real({"final", "share of lr", "where linear and cosine end"}, schedule.final_share,
                                {.low = 0, .high = 1});
  schedule.steps = s.integer_or({"steps", "steps", "the horizon at which the fall ends; auto: run.steps"},
                                "auto", schedule.steps, {.low = 1});
  const std::int64_t horizon = schedule.steps.value_or(run_steps);
  // A run of no steps only writes the initial state, so that its warm-up does not matter.
  if (horizon > 0 && schedule.warmup > horizon) {
    s.error("warmup", "longer than the horizon of " + std::to_string(horizon) + " steps; accepted: 0 to " +
                          std::to_string(horizon));
  }
  return schedule;
}

CheckpointSection read_checkpoint(ConfigSection root) {
  ConfigSection s = root.section({"checkpoint", "", "when the state is saved"});
  CheckpointSection checkpoint;
  const ConfigSection::StepsOrSeconds every = s.steps_or_seconds(
      {"every", "steps or a duration", "time between checkpoints; 0: only at the last step"}, 1000);
  checkpoint.every_steps = every.steps;
  checkpoint.every_seconds = every.seconds;
  checkpoint.keep = s.integer({"keep", "files", "how many of the newest stay"}, checkpoint.keep, {.low = 1});
  if (s.boolean({"async", "", "save while training goes on; true is not available in this version"}, false)) {
    refuse(s, "async", "false");
  }
  constexpr std::array<std::string_view, 3> kModes{"auto", "never", "require"};
  const std::string mode = s.choice(
      {"resume", "",
       "auto: go on from the newest checkpoint where there is one; never: refuse a folder that holds "
       "a run; require: refuse one that holds none"},
      "auto", kModes);
  checkpoint.resume = mode == "auto"    ? ResumeMode::kAuto
                      : mode == "never" ? ResumeMode::kNever
                                        : ResumeMode::kRequire;
  return checkpoint;
}

EvalSection read_eval(ConfigSection root) {
  ConfigSection s = root.section({"eval", "", "validation"});
  EvalSection eval;
  eval.every = s.integer({"every", "steps", "steps between evaluations; 0: only at the last step"},
                         eval.every, {.low = 0});
  eval.batches =
      s.integer_or({"batches", "batches", "how many of the validation part are read; all: each once"}, "all",
                   eval.batches, {.low = 1});
  return eval;
}

/// The tokens of the whole run are counted in 64 bits.
void check_total(ConfigSection root, const RunSpec& spec) {
  std::int64_t tokens = 0;
  if (!checked_product({spec.run.steps, spec.data.batch, spec.data.seq_len + 1}, tokens)) {
    root.error("run.steps", "times data.batch " + std::to_string(spec.data.batch) + " times data.seq_len " +
                                std::to_string(spec.data.seq_len) +
                                " is more tokens than can be counted (2^63)");
  }
}

}  // namespace

RunSpec read_run_spec(ConfigSection root) {
  RunSpec spec;
  spec.run = read_run(root);
  spec.mesh = read_mesh(root);
  ConfigSection topology = root.section({"topology", "", "nodes"});
  spec.nodes =
      topology.integer_or({"nodes", "nodes", "auto: as found; a number rehearses that many on this one"},
                          "auto", std::nullopt, {.low = 1, .high = kInt32Max});
  spec.pipeline = read_pipeline(root);
  spec.sequence_exchange = read_sequence_exchange(root);
  spec.layout = read_layout(root);
  spec.peak_flops = read_device(root);
  spec.precision = read_precision(root);
  spec.recompute = read_recompute(root);
  read_reproducible(root);
  if (!root.has("model"))
    root.error("model", "required; such as model: {family: decoder, layers: 2, width: 64}");
  spec.data = read_data(root);
  spec.optimizer = read_optimizer(root);
  spec.schedule = read_schedule(root, spec.run.steps);
  spec.accumulate =
      root.integer({"accumulate", "microbatches", "parts of a rank's batch that run one after the other"},
                   spec.accumulate, {.low = 1, .high = kInt32Max});
  spec.ema = root.real_or({"ema", "", "decay a step of a running mean of the weights; null: none is kept"},
                          "null", spec.ema, {.low = 0, .high = 1, .low_open = true, .high_open = true});
  spec.checkpoint = read_checkpoint(root);
  spec.eval = read_eval(root);
  ConfigSection log = root.section({"log", "", "lines and metrics"});
  spec.log_every = log.integer({"every", "steps", "steps between lines"}, spec.log_every, {.low = 1});
  spec.check_calls = read_failure(root);
  check_total(root, spec);
  return spec;
}

}  // namespace dew
