// The training run: builds everything, restores, loops, evaluates, logs and saves.
#pragma once

#include <memory>
#include <optional>

#include "comm/mpi_env.h"
#include "train/console.h"
#include "train/run_setup.h"
#include "train/signals.h"
#include "train/step.h"
#include "train/throughput.h"

namespace dew {

class MetricsLog;
class RunLock;

/// What the trainer is given; the referents outlive it.
struct TrainerParts {
  const RunSetup& setup;
  const HostResources& host;
  const StopSignals& signals;
  const Log& log;
  bool terminal = false;  ///< rank 0 prints to a terminal
};

enum class RunEnd : std::uint8_t { kDone, kStopped };

class Trainer {
 public:
  /// Builds the mesh and the sharded state, makes the run's directory and restores the newest checkpoint as
  /// `checkpoint.resume` says. Throws ConfigError for a directory that cannot serve. Collective.
  explicit Trainer(const TrainerParts& parts);
  ~Trainer();

  /// Trains to run.steps, or until a signal: then the state is saved. Throws SharedError on a loss or
  /// gradient that is not finite, before the update and before any save. Collective.
  RunEnd run();

 private:
  SequencePolicy measured_policy();
  void open_directory();
  void restore();
  void open_logs();
  StepSums train_step(std::int64_t step);
  void log_step(std::int64_t step, const StepSums& sums);
  void write_metrics(const StepReport& report);
  void evaluate(std::int64_t step);
  void save(std::int64_t step);
  bool save_is_due() const;
  std::int64_t continued_row(const RunState& state);
  static bool every(std::int64_t interval, std::int64_t step);
  std::string resolved_yaml() const;
  std::int64_t tokens_at(std::int64_t step) const;

  TrainerParts parts_;
  const RunSpec& spec_;
  const HostGroup& ranks_;
  Console console_;
  Allocator allocator_;
  Stream stream_;
  Mesh mesh_;
  SequencePolicy sequence_;
  Engine engine_;
  DataFeed feed_;
  std::unique_ptr<RunLock> lock_;  ///< of rank 0
  std::unique_ptr<MetricsLog> metrics_;
  Throughput throughput_;
  double peak_flops_ = 0;
  double last_step_seconds_ = 0;
  double saved_at_ = 0;  ///< steady seconds of the last save
  bool resumed_ = false;
  std::int64_t first_step_ = 0;    ///< steps done when the run started
  std::int64_t first_tokens_ = 0;  ///< training tokens seen by then
  std::int64_t saved_step_ = -1, evaluated_step_ = -1;
};

}  // namespace dew
