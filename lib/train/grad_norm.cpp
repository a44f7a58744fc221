#include "train/grad_norm.h"

#include <cmath>

#include "base/text.h"
#include "base/timer.h"
#include "kernels/reduce.h"

namespace dew {

StepSums sum_step(const ParamStore& store, double local_loss, Wishes wishes, const HostGroup& ranks) {
  std::vector<double> values{local_loss, wishes.stop ? 1.0 : 0.0, wishes.save ? 1.0 : 0.0};
  values.resize(values.size() + store.specs().size(), 0.0);
  for (const ShardedParameter& param : store.params())
    if (param.owned)
      values[3 + static_cast<std::size_t>(param.index)] =
          kernels::sum_of_squares(store.stream(), param.gradient);
  StepSums sums;
  {
    ScopeTimer timer(sums.wait_seconds);
    ranks.sum(values);
  }
  sums.loss = values[0];
  sums.stop = values[1] > 0;
  sums.save = values[2] > 0;
  sums.squares.assign(values.begin() + 3, values.end());
  double total = 0;
  for (double square : sums.squares) total += square;
  sums.grad_norm = std::sqrt(total);
  return sums;
}

std::string non_finite(const ParamStore& store, const StepSums& sums) {
  std::string text;
  if (!std::isfinite(sums.loss)) text = "loss is " + format("%g", sums.loss);
  for (std::size_t i = 0; i < sums.squares.size(); ++i) {
    if (std::isfinite(sums.squares[i])) continue;
    return text + (text.empty() ? "" : "; ") +
           format("gradient of %s is not finite (sum of squares %g)", store.specs()[i].name.c_str(),
                  sums.squares[i]);
  }
  if (text.empty() && !std::isfinite(sums.grad_norm))
    text = "gradient norm is " + format("%g", sums.grad_norm);
  return text;
}

void check_finite_weights(const ParamStore& store, std::int64_t step, const HostGroup& ranks) {
  std::vector<double> squares(store.specs().size(), 0.0);
  for (const ShardedParameter& param : store.params())
    if (param.owned)
      squares[static_cast<std::size_t>(param.index)] = kernels::sum_of_squares(store.stream(), param.master);
  ranks.sum(squares);
  for (std::size_t i = 0; i < squares.size(); ++i)
    if (!std::isfinite(squares[i]))
      throw SharedError(
          format("step %lld: weights of %s are not finite after the update (learning rate too large?); "
                 "nothing of this step is saved",
                 static_cast<long long>(step), store.specs()[i].name.c_str()));
}

double clip_factor(double norm, double limit) {
  return norm > limit ? limit / norm : 1.0;
}

}  // namespace dew
