#include "kernels/cpu/strided.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd/table.h"

namespace dew::kernels::cpu {

void copy_strided(const std::array<std::int64_t, 4>& extents, const StridedView& from, const StridedView& to,
                  bool accumulate) {
  const std::int64_t rows = extents[0] * extents[1] * extents[2], width = extents[3];
  const auto at = [&extents](const StridedView& view, std::int64_t row) {
    const std::int64_t k = row % extents[2], j = row / extents[2] % extents[1],
                       i = row / extents[2] / extents[1];
    return view.offset + i * view.strides[0] + j * view.strides[1] + k * view.strides[2];
  };
  visit_compute(from.tensor.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* source = from.tensor.data<T>();
    T* target = to.tensor.data<T>();
    const auto& ops = simd_ops<T>();
    parallel_rows(rows, width, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const T* x = source + at(from, row);
        T* y = target + at(to, row);
        if (accumulate)
          ops.add(y, x, y, width);
        else
          std::memcpy(y, x, static_cast<std::size_t>(width) * sizeof(T));
      }
    });
  });
}

void merge_attention(const Tensor& o_part, const Tensor& log_sum_exp_part, const Tensor& o,
                     const Tensor& log_sum_exp) {
  const std::int64_t queries = o.dim(1), heads = o.dim(2), width = o.dim(3);
  visit_compute(o.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* part = o_part.data<T>();
    using R = Real<T>;
    const R* part_sums = log_sum_exp_part.data<R>();
    T* whole = o.data<T>();
    R* sums = log_sum_exp.data<R>();
    const auto& ops = simd_ops<T>();
    parallel_rows(o.dim(0) * queries * heads, width, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t h = row % heads, l = row / heads % queries, b = row / heads / queries;
        const std::int64_t at = (b * heads + h) * queries + l;
        const R other = part_sums[at];
        if (other == -std::numeric_limits<R>::infinity()) continue;  // it saw no key
        const R own = sums[at], most = std::max(own, other);
        // Shares of their own sum: they add up to 1 whatever the size of the sums' logarithms.
        const R weight = std::exp(own - most), other_weight = std::exp(other - most);
        const R both = weight + other_weight, keep = weight / both, take = other_weight / both;
        ops.blend(keep, whole + row * width, take, part + row * width, width);
        sums[at] = most + std::log(both);
      }
    });
  });
}

}  // namespace dew::kernels::cpu
