// The loss over a vocabulary in parts: tokens in parallel.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/cross_entropy.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd/table.h"

namespace dew::kernels::cpu {

namespace {

constexpr std::int64_t kExpCost = 4;  ///< elements of plain arithmetic that take as long
constexpr double kLowest = -std::numeric_limits<double>::infinity();

void check_targets(const Tensor& targets, std::int64_t vocabulary) {
  const std::int32_t* target = targets.data<std::int32_t>();
  for (std::int64_t t = 0; t < targets.numel(); ++t)
    DEW_CHECK(target[t] >= -1 && target[t] < vocabulary, t, target[t], vocabulary);
}

/// The numbers of all parts, [parts, T, 3].
class AllNumbers {
 public:
  AllNumbers(const Tensor& numbers, std::int64_t tokens)
      : numbers_(numbers.data<double>()), parts_(numbers.dim(0)), tokens_(tokens) {}

  const double* of(std::int64_t part, std::int64_t t) const {
    return numbers_ + (part * tokens_ + t) * kPartNumbers;
  }
  /// Largest logit of the token and sum of e^(logit - largest) over the whole vocabulary. A maximum passes
  /// over NaN; the sum brings it back.
  RowSum joined(std::int64_t t) const {
    RowSum all{kLowest, 0};
    for (std::int64_t p = 0; p < parts_; ++p)
      if (of(p, t)[0] > all.largest) all.largest = of(p, t)[0];
    for (std::int64_t p = 0; p < parts_; ++p) {
      // A part without columns or with weightless ones alone adds nothing, whatever the largest is.
      if (of(p, t)[1] != 0) all.sum += of(p, t)[1] * std::exp(of(p, t)[0] - all.largest);
    }
    return all;
  }
  double target_logit(std::int64_t t) const {
    double logit = 0;
    for (std::int64_t p = 0; p < parts_; ++p) logit += of(p, t)[2];
    return logit;
  }

 private:
  const double* numbers_;
  std::int64_t parts_, tokens_;
};

/// One row's numbers; the row becomes its exponentials.
template <class T>
RowSum exponentials_of(T* row, std::int64_t columns) {
  const bool weightless =
      std::all_of(row, row + columns, [](T x) { return static_cast<double>(x) == kLowest; });
  if (!weightless) return real_ops<T>().exp_row(row, columns);
  // Other parts may hold finite logits: e^(-infinity) counts 0, not infinity less infinity.
  std::fill_n(row, columns, T{0});
  return {kLowest, 0};
}

}  // namespace

void cross_entropy_part(const Tensor& logits, const Tensor& targets, const VocabPart& part,
                        const Tensor& part_numbers) {
  check_targets(targets, part.size);
  const std::int64_t columns = logits.dim(1), first = part.first;
  const std::int32_t* target = targets.data<std::int32_t>();
  double* numbers = part_numbers.data<double>();
  visit_float(logits.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* all = logits.data<T>();
    parallel_rows(logits.dim(0), columns * kExpCost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) {
        double* own = numbers + t * kPartNumbers;
        std::fill_n(own, kPartNumbers, 0.0);
        if (target[t] < 0) continue;
        T* row = all + t * columns;
        const std::int64_t column = target[t] - first;
        if (column >= 0 && column < columns) own[2] = static_cast<double>(row[column]);
        const RowSum sum = exponentials_of(row, columns);
        own[0] = sum.largest;
        own[1] = sum.sum;
      }
    });
  });
}

void cross_entropy_joined_loss(const Tensor& all_numbers, const Tensor& targets, const Tensor& losses,
                               const Tensor& loss_sum) {
  const AllNumbers numbers(all_numbers, targets.numel());
  const std::int32_t* target = targets.data<std::int32_t>();
  double* loss = losses.data<double>();
  parallel_rows(targets.numel(), all_numbers.dim(0) * kExpCost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      loss[t] = 0;
      if (target[t] < 0) continue;
      const RowSum sum = numbers.joined(t);
      loss[t] = std::log(sum.sum) + sum.largest - numbers.target_logit(t);
    }
  });
  double& total = *loss_sum.data<double>();
  for (std::int64_t t = 0; t < targets.numel(); ++t) total += loss[t];
}

void cross_entropy_joined_gradient(const Tensor& all_numbers, std::int64_t index, const Tensor& targets,
                                   const VocabPart& part, double grad_scale, const Tensor& exponentials) {
  const std::int64_t columns = exponentials.dim(1), first = part.first;
  const AllNumbers numbers(all_numbers, targets.numel());
  const std::int32_t* target = targets.data<std::int32_t>();
  visit_float(exponentials.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* all = exponentials.data<T>();
    const auto& ops = real_ops<T>();
    parallel_rows(targets.numel(), columns, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) {
        T* row = all + t * columns;
        if (target[t] < 0) {
          std::fill_n(row, columns, T{0});
          continue;
        }
        const RowSum sum = numbers.joined(t);
        const double* own = numbers.of(index, t);
        const double share = own[0] == kLowest && own[1] == 0 ? 0 : std::exp(own[0] - sum.largest);
        ops.scale(row, grad_scale * share / sum.sum, columns);
        const std::int64_t column = target[t] - first;
        if (column >= 0 && column < columns) row[column] -= static_cast<T>(grad_scale);
      }
    });
  });
}

}  // namespace dew::kernels::cpu
