// A run description made into a run that a benchmark takes step by step, and the trainer's log of it.
#pragma once

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/check.h"
#include "io/metrics_log.h"
#include "train/console.h"
#include "train/run_setup.h"
#include "train/step.h"

namespace dew::bench {

/// Everything of one run, with fresh weights.
struct TrainingRun {
  TrainingRun(Config config, const HostGroup& world)
      : setup(prepare_run(std::move(config), world)),
        allocator(Device{}),
        stream(allocator),
        mesh(setup->ranks, setup->mesh, setup->groups),
        engine(setup->parts(), mesh, stream),
        feed(*setup->source, setup->spec, mesh, setup->ranks) {
    stream.set_progress([this] { mesh.poll(); });
    engine.initialize();
  }

  std::unique_ptr<const RunSetup> setup;
  Allocator allocator;
  Stream stream;
  Mesh mesh;
  Engine engine;
  DataFeed feed;
};

/// What a logged step costs the trainer: a line for people, here to nowhere, and one of metrics.jsonl, in a
/// temporary folder. Rank 0 alone writes.
class StepLog {
 public:
  explicit StepLog(const RunSetup& setup) : setup_(setup), nowhere_(std::fopen("/dev/null", "w")) {
    DEW_CHECK(nowhere_ != nullptr, "/dev/null");
    log_.emplace(nowhere_, setup.ranks.rank() == 0);
    console_.emplace(*log_, false);
    if (setup.ranks.rank() != 0) return;
    path_ = (std::filesystem::temp_directory_path() / "bench_metrics.XXXXXX").string();
    DEW_CHECK(::mkdtemp(path_.data()) != nullptr, path_);
    metrics_.emplace(path_ + "/metrics.jsonl", -1);
  }
  StepLog(const StepLog&) = delete;
  StepLog& operator=(const StepLog&) = delete;
  ~StepLog() {
    std::fclose(nowhere_);
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  void write(std::int64_t step, double seconds, const StepSums& sums, const Allocator& allocator) {
    const RunSpec& spec = setup_.spec;
    StepReport r{.step = step, .steps = spec.run.steps, .loss = sums.loss, .grad_norm = sums.grad_norm};
    r.lr = rate_of(spec, step);
    r.tokens = step * spec.data.batch * spec.data.seq_len;
    r.step_seconds = seconds;
    r.tokens_per_second = static_cast<double>(spec.data.batch * spec.data.seq_len) / seconds;
    r.memory_bytes = allocator.use().total_peak;
    if (metrics_) metrics_->write(metrics_of(r));
    console_->step(r);
  }

 private:
  const RunSetup& setup_;
  std::FILE* nowhere_;
  std::optional<Log> log_;
  std::optional<Console> console_;
  std::string path_;
  std::optional<MetricsLog> metrics_;
};

}  // namespace dew::bench
