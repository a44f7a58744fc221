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
#include "train/lr_schedule.h"

namespace dew {

Trainer::Trainer(const TrainerParts& parts)
    : parts_(parts),
      spec_(parts.setup.spec),
      ranks_(parts.setup.ranks),
      console_(parts.log, parts.terminal),
      allocator_(Device{}),
      stream_(allocator_),
      mesh_(ranks_, parts.setup.mesh, {}),
      engine_(parts.setup.parts(), mesh_, stream_),
      feed_(*parts.setup.source, spec_, mesh_, ranks_) {
  stream_.set_progress([this] { mesh_.poll(); });
  peak_flops_ = spec_.peak_flops ? *spec_.peak_flops : measure_peak(spec_.precision.compute, ranks_, stream_);
  console_.head(parts_.setup, parts_.host, peak_flops_);
  open_directory();
  restore();
  open_logs();
  saved_at_ = steady_seconds();
}

Trainer::~Trainer() = default;

void Trainer::open_directory() {
  const std::string directory = spec_.run.dir + "/checkpoints";
  const bool first = ranks_.rank() == 0;
  const ResumeMode resume = spec_.checkpoint.resume;
  const std::string error = first_failure(ranks_, [&] {
    std::error_code none;
    const bool holds_run =
        std::filesystem::is_directory(directory, none) && !checkpoint_steps(directory).empty();
    if (resume == ResumeMode::kNever && holds_run)
      throw Error("checkpoint.resume: never, but " + spec_.run.dir +
                  " holds a run; accepted: another run.dir");
    if (resume == ResumeMode::kRequire && !holds_run)
      throw Error("checkpoint.resume: require, but " + directory + " holds no checkpoint");
    if (first) make_writable_directory(directory, "run.dir");
  });
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
  first_step_ = saved_step_ = restored->state.step;
  console_.line(
      format("resumed from %s at step %lld", restored->file.c_str(), static_cast<long long>(first_step_)));
  if (!restored->missing_prefixes.empty())
    console_.line("the checkpoint holds no moving average: it starts at the weights");
  if (restored->state.seed != spec_.run.seed)
    console_.line(
        format("run.seed is %llu, the checkpoint was trained with %llu: the order of the data changes here",
               static_cast<unsigned long long>(spec_.run.seed),
               static_cast<unsigned long long>(restored->state.seed)));
}

void Trainer::open_logs() {
  const std::string error = first_failure(ranks_, [this] {
    if (ranks_.rank() != 0) return;
    write_file_durably(spec_.run.dir + "/run.yaml", resolved_yaml());
    metrics_ =
        std::make_unique<MetricsLog>(spec_.run.dir + "/metrics.jsonl", first_step_ > 0 ? first_step_ : -1);
    const std::array<JsonField, 6> head{{{"run", spec_.run.name},
                                         {"version", std::string(kVersion)},
                                         {"ranks", static_cast<std::int64_t>(ranks_.size())},
                                         {"peak_flops_per_rank", peak_flops_},
                                         {"flops_per_token", parts_.setup.plan.model_flops_per_token},
                                         {"mfu_counts", std::string(kFlopConvention)}}};
    metrics_->write(head);
  });
  if (!error.empty()) throw SharedError(error);
}

std::string Trainer::resolved_yaml() const {
  return "# dew_train " + std::string(kVersion) + "\n" + parts_.setup.config.resolved();
}

double Trainer::rate_of(std::int64_t step) const {
  return learning_rate(spec_.schedule, spec_.optimizer.lr, spec_.schedule.steps.value_or(spec_.run.steps),
                       step);
}

std::int64_t Trainer::tokens_at(std::int64_t step) const {
  return step * spec_.data.batch * spec_.data.seq_len;
}

RunEnd Trainer::run() {
  for (std::int64_t step = first_step_ + 1; step <= spec_.run.steps; ++step) {
    const StepSums sums = train_step(step);
    const bool last = step == spec_.run.steps, stops = sums.stop && !last;
    if (stops) save(step);  // before anything is printed: a launcher that is ending may not read it
    if (step % spec_.log_every == 0 || last) log_step(step, sums, rate_of(step));
    console_.progress(step, spec_.run.steps, sums.loss, last_step_seconds_);
    if (spec_.eval.every > 0 && step % spec_.eval.every == 0) evaluate(step);
    if (stops) {
      console_.line(
          format("stopped on a signal at step %lld; run again to continue", static_cast<long long>(step)));
      return RunEnd::kStopped;
    }
    if (sums.save ||
        (spec_.checkpoint.every_steps.value_or(0) > 0 && step % *spec_.checkpoint.every_steps == 0))
      save(step);
  }
  const std::int64_t done = std::max(first_step_, spec_.run.steps);
  evaluate(done);
  save(done);
  console_.line(format("done: %lld steps, %s tokens", static_cast<long long>(done),
                       format_count(static_cast<double>(tokens_at(done))).c_str()));
  return RunEnd::kDone;
}

StepSums Trainer::train_step(std::int64_t step) {
  const double begin = steady_seconds();
  mesh_.clear_traffic();
  const double data_before = steady_seconds();
  const auto batches = feed_.step(step - 1, engine_.token_placements(), stream_);
  const double data_wait = steady_seconds() - data_before;
  const double local_loss = engine_.gradients(batches);
  StepSums sums =
      sum_step(engine_.store(), local_loss, {parts_.signals.received(), save_is_due(step)}, ranks_);
  const std::string fault = non_finite(engine_.store(), sums);
  if (!fault.empty())
    throw SharedError(format("step %lld: %s; the weights of step %lld were kept and nothing was saved",
                             static_cast<long long>(step), fault.c_str(), static_cast<long long>(step - 1)));
  const double scale = spec_.optimizer.clip ? clip_factor(sums.grad_norm, *spec_.optimizer.clip) : 1.0;
  engine_.update(step, rate_of(step), scale);
  double comm_wait = sums.wait_seconds;
  for (const auto& [name, traffic] : mesh_.traffic()) comm_wait += traffic.wait_seconds;
  last_step_seconds_ = steady_seconds() - begin;
  throughput_.add(last_step_seconds_, data_wait, comm_wait);
  return sums;
}

void Trainer::log_step(std::int64_t step, const StepSums& sums, double lr) {
  StepReport r;
  r.step = step;
  r.steps = spec_.run.steps;
  r.loss = sums.loss;
  r.grad_norm = sums.grad_norm;
  r.lr = lr;
  r.tokens = tokens_at(step);
  r.step_seconds = throughput_.step_seconds();
  r.tokens_per_second = static_cast<double>(tokens_at(1)) / r.step_seconds;
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
  const std::array<JsonField, 11> fields{{{"step", r.step},
                                          {"loss", r.loss},
                                          {"grad_norm", r.grad_norm},
                                          {"lr", r.lr},
                                          {"tokens", r.tokens},
                                          {"tokens_per_second", r.tokens_per_second},
                                          {"step_seconds", r.step_seconds},
                                          {"mfu", r.mfu},
                                          {"data_wait_seconds", r.data_wait_seconds},
                                          {"comm_wait_seconds", r.comm_wait_seconds},
                                          {"memory_bytes", r.memory_bytes}}};
  metrics_->write(fields);
}

// The mean over every valid target of the batches: sums and counts are added over ranks, then divided once.
void Trainer::evaluate(std::int64_t step) {
  const std::int64_t batches = feed_.validation_batches();
  if (batches == 0 || evaluated_step_ == step) return;
  evaluated_step_ = step;
  std::array<double, 2> sums{0, 0};  // loss, targets
  for (std::int64_t i = 0; i < batches; ++i) {
    const Microbatch microbatch = feed_.validation(i, engine_.token_placements(), stream_);
    sums[0] += engine_.evaluate(microbatch);
    sums[1] += static_cast<double>(microbatch.batch.valid);
  }
  ranks_.sum(std::span<double>(sums));
  const double loss = sums[0] / sums[1];
  if (metrics_) {
    const std::array<JsonField, 2> fields{{{"step", step}, {"val_loss", loss}}};
    metrics_->write(fields);
  }
  console_.evaluation(step, loss);
}

bool Trainer::save_is_due(std::int64_t) const {
  return ranks_.rank() == 0 && spec_.checkpoint.every_seconds &&
         steady_seconds() - saved_at_ >= *spec_.checkpoint.every_seconds;
}

void Trainer::save(std::int64_t step) {
  if (saved_step_ == step) return;
  const Sampler::Place place = feed_.reader().position(step);
  RunState state;
  state.step = step;
  state.tokens = tokens_at(step);
  state.seed = spec_.run.seed;
  state.epoch = place.epoch;
  state.row = place.window;
  state.resolved_yaml = resolved_yaml();
  state.version = kVersion;
  save_checkpoint(spec_.run.dir + "/checkpoints", engine_.named_shards(), state, spec_.checkpoint.keep,
                  ranks_);
  saved_step_ = step;
  saved_at_ = steady_seconds();
}

}  // namespace dew
