#include "kernels/cpu/heads.h"

#include <algorithm>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd/table.h"

namespace dew::kernels::cpu {

void select_heads(const Tensor& x, std::span<const std::int64_t> heads, const Tensor& y) {
  const std::int64_t all = x.dim(2), width = x.dim(3), chosen = y.dim(2);
  visit_compute(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.data<T>();
    T* to = y.data<T>();
    parallel_rows(y.dim(0) * y.dim(1), chosen * width, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t)
        for (std::int64_t i = 0; i < chosen; ++i)
          std::copy_n(from + (t * all + heads[static_cast<std::size_t>(i)]) * width, width,
                      to + (t * chosen + i) * width);
    });
  });
}

void select_heads_backward(const Tensor& dy, std::span<const std::int64_t> heads, const Target& dx) {
  const std::int64_t all = dx.into.dim(2), width = dx.into.dim(3), chosen = dy.dim(2);
  visit_compute(dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* from = dy.data<T>();
    T* to = dx.into.data<T>();
    const auto& ops = simd_ops<T>();
    parallel_rows(dy.dim(0) * dy.dim(1), (all + chosen) * width, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) {
        if (!dx.accumulate) std::fill_n(to + t * all * width, all * width, T{});
        for (std::int64_t i = 0; i < chosen; ++i) {
          T* head = to + (t * all + heads[static_cast<std::size_t>(i)]) * width;
          ops.add(head, from + (t * chosen + i) * width, head, width);
        }
      }
    });
  });
}

}  // namespace dew::kernels::cpu
