#include "train/step_report.h"

namespace dew {

std::array<JsonField, 11> metrics_of(const StepReport& r) {
  return {{{"step", r.step},
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
}

}  // namespace dew
