// What is told of a logged step.
#pragma once

#include <array>
#include <cstdint>

#include "io/metrics_log.h"

namespace dew {

/// One logged step, as it goes to the console and to metrics.jsonl.
struct StepReport {
  std::int64_t step = 0, steps = 0;
  double loss = 0, grad_norm = 0, lr = 0;
  std::int64_t tokens = 0;  ///< cumulative
  double tokens_per_second = 0, step_seconds = 0, mfu = 0;
  double data_wait_seconds = 0, comm_wait_seconds = 0;
  std::int64_t memory_bytes = 0;
};

/// Its line of metrics.jsonl.
std::array<JsonField, 11> metrics_of(const StepReport& report);

}  // namespace dew
