#include "kernels/cpu/bias.h"

#include "kernels/cpu/add_row.h"
#include "kernels/cpu/column_sums.h"
#include "kernels/cpu/simd/table.h"

namespace dew::kernels::cpu {

void add_bias(const Tensor& x, const Tensor& bias, const Tensor& y) {
  visit_compute(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t d = bias.numel();
    const T *px = x.data<T>(), *pb = bias.data<T>();
    T* py = y.data<T>();
    const auto& ops = simd_ops<T>();
    parallel_rows(x.numel() / d, d, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) ops.add(px + t * d, pb, py + t * d, d);
    });
  });
}

void bias_backward(const Tensor& dy, const Target& d_bias, const Tensor& sums) {
  const std::int64_t d = d_bias.into.numel();
  clear_sums(sums);
  visit_compute(dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* in = dy.data<T>();
    Real<T>* first = sums.data<Real<T>>();
    for_chunked_rows(dy.numel() / d, d, [&](std::int64_t row, std::int64_t chunk) {
      add_row(in + row * d, first + chunk * d, d);
    });
  });
  finish_sums(sums, d_bias);
}

}  // namespace dew::kernels::cpu
