#include "kernels/cpu/cross_entropy.h"

#include <cmath>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd/table.h"

namespace dew::kernels::cpu {

namespace {

constexpr std::int64_t kExpCost = 4;  ///< elements of plain arithmetic that take as long

void check_targets(const Tensor& targets, std::int64_t vocabulary) {
  const std::int32_t* target = targets.data<std::int32_t>();
  for (std::int64_t t = 0; t < targets.numel(); ++t)
    DEW_CHECK(target[t] >= -1 && target[t] < vocabulary, t, target[t], vocabulary);
}

}  // namespace

void cross_entropy(const Tensor& logits, const Tensor& targets, LogitsGradient gradient, double grad_scale,
                   const Tensor& losses, const Tensor& loss_sum) {
  const std::int64_t tokens = logits.dim(0), vocabulary = logits.dim(1);
  check_targets(targets, vocabulary);
  const std::int32_t* target = targets.data<std::int32_t>();
  double* loss = losses.data<double>();
  const bool wanted = gradient == LogitsGradient::kYes;
  visit_float(logits.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* all = logits.data<T>();
    const auto& ops = real_ops<T>();
    parallel_rows(tokens, vocabulary * kExpCost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) {
        T* row = all + t * vocabulary;
        loss[t] = 0;
        if (target[t] < 0) {
          if (wanted) std::fill_n(row, vocabulary, T{0});
          continue;
        }
        const double own = static_cast<double>(row[target[t]]);
        const RowSum sum = wanted ? ops.exp_row(row, vocabulary) : ops.log_sum_exp_row(row, vocabulary);
        loss[t] = std::log(sum.sum) + sum.largest - own;
        if (!wanted) continue;
        ops.scale(row, grad_scale / sum.sum, vocabulary);
        row[target[t]] -= static_cast<T>(grad_scale);
      }
    });
  });
  double& total = *loss_sum.data<double>();
  for (std::int64_t t = 0; t < tokens; ++t) total += loss[t];
}

}  // namespace dew::kernels::cpu
