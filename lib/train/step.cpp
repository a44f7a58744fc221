#include "train/step.h"

#include "train/lr_schedule.h"

namespace dew {

StepResult run_gradients(Engine& engine, const DataFeed& feed, std::int64_t step, Wishes wishes,
                         const HostGroup& ranks, Stream& stream) {
  StepResult result;
  const StepData data = feed.step(step - 1, engine.token_placements(), stream);
  const double loss = engine.gradients(data.microbatches);
  result.sums = sum_step(engine.store(), loss, wishes, ranks);
  result.read_seconds = data.read_seconds;
  result.wait_seconds = data.wait_seconds + result.sums.wait_seconds;
  return result;
}

double rate_of(const RunSpec& spec, std::int64_t step) {
  return learning_rate(spec.schedule, spec.optimizer.lr, spec.schedule.steps.value_or(spec.run.steps), step);
}

double gradient_scale(const RunSpec& spec, const StepSums& sums) {
  return spec.optimizer.clip ? clip_factor(sums.grad_norm, *spec.optimizer.clip) : 1.0;
}

void apply_update(Engine& engine, const RunSpec& spec, std::int64_t step, const StepSums& sums) {
  engine.update(step, rate_of(spec, step), gradient_scale(spec, sums));
}

}  // namespace dew
