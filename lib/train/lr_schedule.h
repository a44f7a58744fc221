// The learning rate of each step: linear warm-up, then constant, linear or cosine decay to a share of the
// peak.
#pragma once

#include <cstdint>

#include "io/run_spec.h"

namespace dew {

/// Rate of `step` (counted from 1). Warm-up: peak * step / warmup for step <= warmup. Then, with
/// p = (step - warmup) / (horizon - warmup), at most 1: linear peak * (1 - (1 - final) p); cosine
/// peak * (final + (1 - final) (1 + cos(pi p)) / 2) (arXiv:1608.03983 eq. 5 without restarts).
double learning_rate(const ScheduleSection& schedule, double peak, std::int64_t horizon, std::int64_t step);

}  // namespace dew
