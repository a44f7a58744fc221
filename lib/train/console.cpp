#include "train/console.h"

#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "base/timer.h"
#include "base/version.h"
#include "kernels/gemm.h"
#include "train/schedule_check.h"

namespace dew {
namespace {

long long ll(std::int64_t value) {
  return static_cast<long long>(value);
}

std::string memory_line(const Plan& plan) {
  const PlacementAudit& audit = plan.audit;
  std::string text = "memory: " + format_bytes(static_cast<double>(plan.memory.total_peak)) +
                     " a rank at its peak (" + describe_memory(plan.memory) + ")";
  if (audit.sharded + audit.whole_small + audit.whole_by_rule > 0) {
    const double all = static_cast<double>(std::max<std::int64_t>(1, audit.elements));
    text += format(
        "; %.1f%% of the elements sharded, %.1f%% whole for being small, %.1f%% whole by the rules",
        100 * static_cast<double>(audit.sharded) / all, 100 * static_cast<double>(audit.whole_small) / all,
        100 * static_cast<double>(audit.whole_by_rule) / all);
  }
  return text;
}

std::string recompute_text(const RecomputeSection& recompute) {
  if (recompute.full) return "full";
  std::string text;
  for (const std::string& site : recompute.sites) text += (text.empty() ? "" : ", ") + site;
  return text.empty() ? "none" : text;
}

}  // namespace

std::string axes_text(const MeshShape& mesh) {
  std::string text;
  for (Axis axis : mesh.order)
    if (mesh[axis] > 1)
      text += (text.empty() ? "" : " x ") + std::string(name_of(axis)) + ' ' + std::to_string(mesh[axis]);
  return text.empty() ? "one rank" : text;
}

void Console::pipeline_lines(const RunSetup& setup) {
  const ChainCut& cut = setup.cut;
  if (cut.stages == 1) return;
  const PipelineShape shape{cut.stages, static_cast<int>(microbatches_of(setup.spec, setup.mesh)),
                            cut.chunks};
  const std::vector<Program> programs = step_programs(setup.spec, setup.mesh, cut);
  // A chunk takes as long as its blocks' FLOP, each half of a backward as long as the forward.
  std::vector<ActionTimes> times;
  for (int stage = 0; stage < cut.stages; ++stage) {
    double flops = 0;
    for (int chunk = 0; chunk < cut.chunks; ++chunk)
      for (int b = cut.begin(cut.part(stage, chunk)); b < cut.end(cut.part(stage, chunk)); ++b)
        flops += setup.block_flops[static_cast<std::size_t>(b)];
    const double mean = flops / cut.chunks;
    times.push_back({mean, mean, mean});
  }
  const ScheduleReport report = check_schedule(programs, shape, times);
  line(format("pipeline: %s, %d microbatches, blocks %s%s; at most %d live at once, bubble %.1f%% by FLOP",
              std::string(name_of(setup.spec.pipeline.schedule)).c_str(), shape.microbatches,
              cut.str().c_str(), cut.chunks > 1 ? " (chunks go round the stages)" : "", report.most_live(),
              100 * report.bubble()));
}

void Console::sequence_lines(const RunSetup& setup, const SequencePolicy& sequence) {
  for (const SequenceCall& call : setup.attention_calls) {
    const ExchangeChoice choice = sequence.choose(call);
    line(format("attention over sequence: %s for %s: %s", std::string(name_of(choice.exchange)).c_str(),
                call.str().c_str(), choice.reason.c_str()));
  }
}

void Console::head(const RunSetup& setup, const SequencePolicy& sequence, const HostResources& host,
                   double peak_flops) {
  if (!log_.enabled()) return;
  const RunSpec& spec = setup.spec;
  const Topology& topology = setup.topology;
  const std::int64_t microbatches = microbatches_of(spec, setup.mesh);
  const std::string dtype(name_of(spec.precision.compute));
  line(format("dew_train %s: %s", std::string(kVersion).c_str(), spec.run.name.c_str()));
  line(format(
      "ranks: %d on %d node%s%s, cpu, %d thread%s a rank%s, %s (master %s, reduce %s), peak %sFLOP/s a rank",
      topology.world_size, topology.node_count, topology.node_count == 1 ? "" : "s",
      topology.rehearsed ? " (rehearsed)" : "", host.threads, host.threads == 1 ? "" : "s",
      host.yields ? " (more ranks than cores: ranks yield when idle)" : "", dtype.c_str(),
      std::string(name_of(spec.precision.master)).c_str(),
      std::string(name_of(spec.precision.reduce)).c_str(), format_count(peak_flops).c_str()));
  if (spec.precision.compute == DType::kBf16 && !kernels::multiplies_bf16())
    line("bf16: this processor multiplies none (no AVX-512 BF16): products widen their factors to f32");
  std::string map = explain(setup.mesh, topology);
  while (map.ends_with('\n')) map.pop_back();
  line(map);
  line(format("model: %s; %s parameters, %sFLOP a token", setup.model.summary.c_str(),
              format_count(static_cast<double>(setup.model.parameter_count())).c_str(),
              format_count(setup.plan.model_flops_per_token).c_str()));
  const std::string rows = spec.data.documents.value_or(false) ? format("rows split into documents by eos %d",
                                                                        setup.source->eos_id().value_or(-1))
                                                               : "rows";
  line(format("data: %s; %s training and %s validation tokens, %lld %s of %lld a step in %lld microbatch%s",
              setup.source->describe().c_str(),
              format_count(static_cast<double>(setup.source->tokens(Split::kTrain))).c_str(),
              format_count(static_cast<double>(setup.source->tokens(Split::kValidation))).c_str(),
              ll(spec.data.batch), rows.c_str(), ll(spec.data.seq_len), ll(microbatches),
              microbatches == 1 ? "" : "es"));
  pipeline_lines(setup);
  sequence_lines(setup, sequence);
  if (setup.mesh[Axis::kFsdp] > 1 && setup.plan.audit.sharded == 0)
    line(format("warning: fsdp %d shards nothing: no parameter has layout.min_shard = %lld elements",
                setup.mesh[Axis::kFsdp], ll(spec.layout.min_shard)));
  line(memory_line(setup.plan) + "; recompute: " + recompute_text(spec.recompute));
}

void Console::line(const std::string& text) {
  finish();
  log_.line(text);
}

void Console::step(const StepReport& r) {
  const double left = r.step_seconds * static_cast<double>(r.steps - r.step);
  line(format("step %lld/%lld  loss %.4f  norm %.3f  lr %.2e  %s tokens/s  mfu %.1f%%  %s left", ll(r.step),
              ll(r.steps), r.loss, r.grad_norm, r.lr, format_count(r.tokens_per_second).c_str(), 100 * r.mfu,
              format_duration(left).c_str()));
}

void Console::evaluation(std::int64_t step, double loss) {
  line(format("step %lld  validation loss %.4f", ll(step), loss));
}

void Console::progress(std::int64_t step, std::int64_t steps, double loss, double step_seconds) {
  constexpr double kInterval = 0.1;
  if (!log_.enabled() || !terminal_) return;
  const double now = steady_seconds();
  if (now - refreshed_ < kInterval) return;
  refreshed_ = now;
  shown_ = true;
  const int width = 24, done = static_cast<int>(width * step / std::max<std::int64_t>(1, steps));
  const std::string bar = std::string(static_cast<std::size_t>(done), '=') +
                          std::string(static_cast<std::size_t>(width - done), ' ');
  std::fprintf(log_.sink(), "\r\033[K[%s] %lld/%lld  loss %.4f  %s left", bar.c_str(), ll(step), ll(steps),
               loss, format_duration(step_seconds * static_cast<double>(steps - step)).c_str());
  std::fflush(log_.sink());
}

void Console::finish() {
  if (!shown_) return;
  std::fputs("\r\033[K", log_.sink());
  std::fflush(log_.sink());
  shown_ = false;
}

}  // namespace dew
