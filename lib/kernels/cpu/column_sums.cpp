#include "kernels/cpu/column_sums.h"

#include "kernels/cpu/simd/table.h"

namespace dew::kernels::cpu {

void clear_sums(const Tensor& sums) {
  std::fill_n(sums.data<double>(), sums.numel(), 0.0);
}

void finish_sums(const Tensor& sums, const Target& target) {
  const std::int64_t chunks = sums.dim(0), d = sums.dim(1);
  double* first = sums.data<double>();
  for (std::int64_t chunk = 1; chunk < chunks; ++chunk)
    simd_ops<double>().add(first, first + chunk * d, first, d);
  visit_float(target.into.dtype(), [&](auto zero) {
    using R = decltype(zero);
    R* out = target.into.data<R>();
    for (std::int64_t j = 0; j < d; ++j) {
      const double sum = chunks > 0 ? first[j] : 0.0;
      out[j] = static_cast<R>(target.accumulate ? static_cast<double>(out[j]) + sum : sum);
    }
  });
}

}  // namespace dew::kernels::cpu
