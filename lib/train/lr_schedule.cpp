#include "train/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace dew {

double learning_rate(const ScheduleSection& schedule, double peak, std::int64_t horizon, std::int64_t step) {
  const double at = static_cast<double>(step), warmup = static_cast<double>(schedule.warmup);
  if (step <= schedule.warmup) return peak * at / warmup;
  const double left = std::max(1.0, static_cast<double>(horizon) - warmup);
  const double progress = std::min(1.0, (at - warmup) / left), final_share = schedule.final_share;
  switch (schedule.kind) {
    case ScheduleKind::kLinear:
      return peak * (1 - (1 - final_share) * progress);
    case ScheduleKind::kCosine:
      return peak * (final_share + (1 - final_share) * (1 + std::cos(std::numbers::pi * progress)) / 2);
    case ScheduleKind::kConstant:
      break;
  }
  return peak;
}

}  // namespace dew
