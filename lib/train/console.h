// What a person sees: the head, a line a logged step, a progress line on a terminal. Rank 0 alone prints.
#pragma once

#include <cstdint>
#include <string>

#include "base/log.h"
#include "comm/mpi_env.h"
#include "train/run_setup.h"
#include "train/step_report.h"

namespace dew {

/// "replica 2 x fsdp 4": the axes of extent above 1; "one rank" without any.
std::string axes_text(const MeshShape& mesh);

class Console {
 public:
  /// `terminal`: refresh a progress line in place.
  Console(const Log& log, bool terminal) : log_(log), terminal_(terminal) {}

  void head(const RunSetup& setup, const SequencePolicy& sequence, const HostResources& host,
            double peak_flops);
  void line(const std::string& text);
  void step(const StepReport& report);
  void evaluation(std::int64_t step, double loss);
  /// Refreshes the progress line, at most ten times a second.
  void progress(std::int64_t step, std::int64_t steps, double loss, double step_seconds);
  /// Removes the progress line.
  void finish();

 private:
  void pipeline_lines(const RunSetup& setup);
  void sequence_lines(const RunSetup& setup, const SequencePolicy& sequence);

  const Log& log_;
  bool terminal_;
  bool shown_ = false;
  double refreshed_ = 0;
};

}  // namespace dew
