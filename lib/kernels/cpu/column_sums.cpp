#include "kernels/cpu/column_sums.h"

#include <array>

#include "kernels/cpu/add_row.h"

namespace dew::kernels::cpu {

void clear_sums(const Tensor& sums) {
  visit_float(sums.dtype(), [&](auto zero) { std::fill_n(sums.data<decltype(zero)>(), sums.numel(), zero); });
}

void finish_sums(const Tensor& sums, const Target& target) {
  constexpr std::int64_t kColumns = 512;
  const std::int64_t chunks = sums.dim(0), d = sums.dim(1);
  std::array<double, kColumns> total{};
  for (std::int64_t begin = 0; begin < d; begin += kColumns) {
    const std::int64_t count = std::min(kColumns, d - begin);
    total.fill(0);
    visit_float(sums.dtype(), [&](auto zero) {
      const auto* first = sums.data<decltype(zero)>();
      for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
        add_row(first + chunk * d + begin, total.data(), count);
    });
    visit_float(target.into.dtype(), [&](auto zero) {
      using R = decltype(zero);
      R* out = target.into.data<R>() + begin;
      for (std::int64_t j = 0; j < count; ++j)
        out[j] = static_cast<R>(target.accumulate ? static_cast<double>(out[j]) + total[j] : total[j]);
    });
  }
}

}  // namespace dew::kernels::cpu
