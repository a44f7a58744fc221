#include "kernels/cpu/norm.h"

#include "kernels/cpu/column_sums.h"
#include "kernels/cpu/simd/table.h"

namespace dew::kernels::cpu {

void rms_norm_forward(const Tensor& x, const Tensor& weight, double eps, const Tensor& y,
                      const Tensor& inverse_rms) {
  visit_compute(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t d = weight.numel();
    const T *px = x.data<T>(), *pw = weight.data<T>();
    T* py = y.data<T>();
    Real<T>* pr = inverse_rms.data<Real<T>>();
    const auto& ops = simd_ops<T>();
    parallel_rows(inverse_rms.numel(), d, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) pr[t] = ops.rms_forward(px + t * d, pw, eps, py + t * d, d);
    });
  });
}

void rms_norm_backward(const Tensor& x, const Tensor& weight, const Tensor& inverse_rms, const Tensor& dy,
                       const Target& dx, const Target& d_weight, const Tensor& sums) {
  const std::int64_t d = weight.numel(), rows = inverse_rms.numel();
  clear_sums(sums);
  visit_compute(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *px = x.data<T>(), *pw = weight.data<T>(), *pd = dy.data<T>();
    const Real<T>* pr = inverse_rms.data<Real<T>>();
    T* out = dx.into.data<T>();
    Real<T>* first = sums.data<Real<T>>();
    const auto& ops = simd_ops<T>();
    for_chunked_rows(rows, d, [&](std::int64_t row, std::int64_t chunk) {
      ops.rms_backward(px + row * d, pw, pr[row], pd + row * d, out + row * d, dx.accumulate,
                       first + chunk * d, d);
    });
  });
  finish_sums(sums, d_weight);
}

}  // namespace dew::kernels::cpu
