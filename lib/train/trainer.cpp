#include "train/trainer.h"

#include <array>
#include <cmath>
#include <filesystem>

#include "base/text.h"
#include "base/timer.h"
#include "base/version.h"
#include "comm/agreement.h"
#include "io/durable_file.h"
#include "io/metrics_log.h"
#include "io/run_lock.h"
#include "io/settings_changes.h"

namespace dew {
namespace {

long long ll(std::int64_t value) {
  return static_cast<long long>(value);
}

}  // namespace

Trainer::Trainer(const TrainerParts& parts)
    : parts_(parts),
      spec_(parts.setup.spec),
      ranks_(parts.setup.ranks),
      console_(parts.log, parts.terminal),
      allocator_(Device{}),
      stream_(allocator_),
      mesh_(ranks_, parts.setup.mesh, parts.setup.groups),
      sequence_(measured_policy()),
      engine_(parts.setup.parts(sequence_), mesh_, stream_),
      feed_(*parts.setup.source, spec_, mesh_, ranks_) {
  peak_flops_ = spec_.peak_flops ? *spec_.peak_flops : measure_peak(spec_.precision.compute, ranks_, stream_);
  console_.head(parts_.setup, sequence_, parts_.host, peak_flops_);
  open_directory();
  restore();
  open_logs();
  saved_at_ = steady_seconds();
  allocator_.reset_peaks();  // what was measured and restored is no part of a step
}

Trainer::~Trainer() = default;

// The network advances beside the compute of the trial as it will in training.
SequencePolicy Trainer::measured_policy() {
  stream_.set_progress([this] { mesh_.poll(); });
  return settled_policy(parts_.setup, mesh_, stream_);
}

void Trainer::open_directory() {
  namespace fs = std::filesystem;
  const std::string directory = spec_.run.dir + "/checkpoints";
  const bool first = ranks_.rank() == 0;
  const ResumeMode resume = spec_.checkpoint.resume;
  std::string error = first_failure(ranks_, [&] {
    std::error_code none;
    const bool has_checkpoint = fs::is_directory(directory, none) && !checkpoint_steps(directory).empty();
    const bool holds_run = has_checkpoint || fs::exists(spec_.run.dir + "/metrics.jsonl", none);
    if (resume == ResumeMode::kNever && holds_run)
      throw Error("checkpoint.resume: never, but " + spec_.run.dir +
                  " holds a run; accepted: another run.dir");
    if (resume == ResumeMode::kRequire && !has_checkpoint)
      throw Error("checkpoint.resume: require, but " + directory + " holds no checkpoint");
    if (first) make_writable_directory(directory, "run.dir");
  });
  if (error.empty()) {
    error = first_failure(ranks_, [&] {
      std::error_code none;
      if (!fs::is_directory(directory, none))
        throw Error("run.dir: " + directory + " is not seen here; accepted: a folder that all nodes share");
    });
  }
  if (error.empty()) {
    error = first_failure(ranks_, [&] {
      if (first) lock_ = std::make_unique<RunLock>(spec_.run.dir);
    });
  }
  if (!error.empty()) throw ConfigError(error);
}

void Trainer::restore() {
  const std::vector<NamedShard> shards = engine_.named_shards();
  const std::array<std::string, 1> optional_prefixes{"/ema/"};
  const auto restored =
      restore_newest(spec_.run.dir + "/checkpoints", shards, optional_prefixes, ranks_, parts_.log);
  if (!restored) {
    engine_.initialize();
    return;
  }
  engine_.fill_missing(restored->missing_prefixes);
  const RunState& state = restored->state;
  if (state.step > spec_.run.steps)
    throw ConfigError(format("run.steps: %lld: the run in %s is at step %lld; accepted: %lld or more",
                             ll(spec_.run.steps), spec_.run.dir.c_str(), ll(state.step), ll(state.step)));
  resumed_ = true;
  first_step_ = saved_step_ = state.step;
  first_tokens_ = state.tokens;
  feed_.continue_at(state.step, continued_row(state));
  console_.line(format("resumed from %s at step %lld", restored->file.c_str(), ll(state.step)));
  if (!restored->missing_prefixes.empty())
    console_.line("the checkpoint holds no moving average: it starts at the weights");
  if (!restored->unused_prefixes.empty())
    console_.line("the checkpoint's moving average is dropped, since ema is null");
  if (state.seed != spec_.run.seed)
    console_.line(
        format("run.seed is %llu, the checkpoint was trained with %llu: data continue in another order "
               "(generated sentences are "
               "others)",
               static_cast<unsigned long long>(spec_.run.seed), static_cast<unsigned long long>(state.seed)));
  for (const std::string& change : settings_changes(state.resolved_yaml, resolved_yaml()))
    console_.line(change);
}

namespace {

std::string splitting(std::int64_t eos) {
  return eos < 0 ? "nothing" : "eos " + std::to_string(eos);
}

}  // namespace

// The row at which a restored run goes on: the same epoch and row, also when the batch has another size now.
std::int64_t Trainer::continued_row(const RunState& state) {
  const std::int64_t windows = feed_.reader().train_windows();
  if (state.windows != windows)
    console_.line(
        format("an epoch has %lld rows now and had %lld at the checkpoint: the data or seq_len changed",
               ll(windows), ll(state.windows)));
  if (state.eos != std::int64_t{feed_.reader().eos().value_or(-1)})
    console_.line(format(
        "rows are split into documents by %s now and were by %s at the checkpoint: losses do not compare",
        splitting(feed_.reader().eos().value_or(-1)).c_str(), splitting(state.eos).c_str()));
  return state.epoch * windows + std::min(state.row, windows);
}

void Trainer::open_logs() {
  std::int64_t evaluated = -1;
  const std::string error = first_failure(ranks_, [this, &evaluated] {
    if (ranks_.rank() != 0) return;
    write_file_durably(spec_.run.dir + "/run.yaml", resolved_yaml());
    metrics_ = std::make_unique<MetricsLog>(spec_.run.dir + "/metrics.jsonl", resumed_ ? first_step_ : -1);
    evaluated = metrics_->last_evaluation();
    const std::array<JsonField, 6> head{{{"run", spec_.run.name},
                                         {"version", std::string(kVersion)},
                                         {"ranks", static_cast<std::int64_t>(ranks_.size())},
                                         {"peak_flops_per_rank", peak_flops_},
                                         {"flops_per_token", parts_.setup.plan.model_flops_per_token},
                                         {"mfu_counts", std::string(kFlopConvention)}}};
    metrics_->write(head);
  });
  if (!error.empty()) throw SharedError(error);
  ranks_.max({&evaluated, 1});
  evaluated_step_ = evaluated;
}

std::string Trainer::resolved_yaml() const {
  return "# dew_train " + std::string(kVersion) + "\n" + parts_.setup.config.resolved();
}

std::int64_t Trainer::tokens_at(std::int64_t step) const {
  return first_tokens_ + (step - first_step_) * spec_.data.batch * spec_.data.seq_len;
}

bool Trainer::every(std::int64_t interval, std::int64_t step) {
  return interval > 0 && step > 0 && step % interval == 0;
}

// A step is saved before it is evaluated: what a long evaluation could lose is time, never steps. An
// evaluation that a stop left out is made up for when the run goes on.
RunEnd Trainer::run() {
  if (every(spec_.eval.every, first_step_)) evaluate(first_step_);
  for (std::int64_t step = first_step_ + 1; step <= spec_.run.steps; ++step) {
    const StepSums sums = train_step(step);
    const bool last = step == spec_.run.steps;
    if (sums.stop || sums.save || last || every(spec_.checkpoint.every_steps.value_or(0), step))
      save(step);  // before anything is printed: a launcher that is ending may not read it
    if (every(spec_.log_every, step) || last) log_step(step, sums);
    console_.progress(step, spec_.run.steps, sums.loss, last_step_seconds_);
    if (sums.stop && !last) {
      console_.line(format("stopped on a signal at step %lld and saved in %s; run again to continue",
                           ll(step), spec_.run.dir.c_str()));
      return RunEnd::kStopped;
    }
    if (every(spec_.eval.every, step)) evaluate(step);
  }
  save(spec_.run.steps);
  evaluate(spec_.run.steps);
  console_.line(format("done: %lld steps, %s tokens; run and checkpoints in %s", ll(spec_.run.steps),
                       format_count(static_cast<double>(tokens_at(spec_.run.steps))).c_str(),
                       spec_.run.dir.c_str()));
  return RunEnd::kDone;
}

StepSums Trainer::train_step(std::int64_t step) {
  const double begin = steady_seconds();
  mesh_.clear_traffic();
  const Wishes wishes{parts_.signals.received(), save_is_due()};
  StepResult result = run_gradients(engine_, feed_, step, wishes, ranks_, stream_);
  const std::string fault = non_finite(engine_.store(), result.sums);
  if (!fault.empty())
    throw SharedError(
        format("step %lld: %s; nothing of this step was applied or saved", ll(step), fault.c_str()));
  apply_update(engine_, spec_, step, result.sums);
  if (spec_.check_calls) mesh_.check_same_calls(ranks_);
  double comm_wait = result.wait_seconds;
  for (const auto& [name, traffic] : mesh_.traffic()) comm_wait += traffic.wait_seconds;
  last_step_seconds_ = steady_seconds() - begin;
  throughput_.add(last_step_seconds_, result.read_seconds, comm_wait);
  return result.sums;
}

void Trainer::log_step(std::int64_t step, const StepSums& sums) {
  StepReport r;
  r.step = step;
  r.steps = spec_.run.steps;
  r.loss = sums.loss;
  r.grad_norm = sums.grad_norm;
  r.lr = rate_of(spec_, step);
  r.tokens = tokens_at(step);
  r.step_seconds = throughput_.step_seconds();
  r.tokens_per_second = static_cast<double>(spec_.data.batch * spec_.data.seq_len) / r.step_seconds;
  r.mfu = r.tokens_per_second * parts_.setup.plan.model_flops_per_token / (peak_flops_ * ranks_.size());
  r.data_wait_seconds = throughput_.data_wait / static_cast<double>(throughput_.steps);
  r.comm_wait_seconds = throughput_.comm_wait / static_cast<double>(throughput_.steps);
  r.memory_bytes = allocator_.use().total_peak;
  throughput_ = {};
  write_metrics(r);
  console_.step(r);
}

void Trainer::write_metrics(const StepReport& r) {
  if (!metrics_) return;
  metrics_->write(metrics_of(r));
}

// The mean over every valid target of the batches: sums and counts are added over ranks, then divided once.
// Ranks that hold the same tokens count once.
void Trainer::evaluate(std::int64_t step) {
  const std::int64_t batches = feed_.validation_batches();
  if (batches == 0 || evaluated_step_ == step) return;
  evaluated_step_ = step;
  std::array<double, 2> sums{0, 0};  // loss, targets
  const bool counts = mesh_.coord(Axis::kTensor) == 0 && mesh_.coord(Axis::kStage) == 0;
  for (std::int64_t i = 0; i < batches; ++i) {
    const Microbatch microbatch = feed_.validation(i, engine_.token_placements(), stream_);
    sums[0] += engine_.evaluate(microbatch);
    if (counts) sums[1] += static_cast<double>(microbatch.batch.valid);
  }
  ranks_.sum(std::span<double>(sums));
  if (sums[1] == 0)
    throw SharedError(format("step %lld: every target of the evaluation is masked", ll(step)));
  const double loss = sums[0] / sums[1];
  if (!std::isfinite(loss)) throw SharedError(format("step %lld: validation loss is %g", ll(step), loss));
  if (metrics_) {
    const std::array<JsonField, 2> fields{{{"step", step}, {"val_loss", loss}}};
    metrics_->write(fields);
  }
  console_.evaluation(step, loss);
}

bool Trainer::save_is_due() const {
  return ranks_.rank() == 0 && spec_.checkpoint.every_seconds &&
         steady_seconds() - saved_at_ >= *spec_.checkpoint.every_seconds;
}

void Trainer::save(std::int64_t step) {
  if (saved_step_ == step) return;
  check_finite_weights(engine_.store(), step, ranks_);
  const Sampler::Place place = feed_.reader().position(step);
  RunState state;
  state.step = step;
  state.tokens = tokens_at(step);
  state.seed = spec_.run.seed;
  state.epoch = place.epoch;
  state.row = place.window;
  state.windows = feed_.reader().train_windows();
  state.eos = std::int64_t{feed_.reader().eos().value_or(-1)};
  state.resolved_yaml = resolved_yaml();
  state.version = kVersion;
  save_checkpoint(spec_.run.dir + "/checkpoints", engine_.named_shards(), state, spec_.checkpoint.keep,
                  ranks_);
  saved_step_ = step;
  saved_at_ = steady_seconds();
}

}  // namespace dew
