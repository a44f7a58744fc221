#include "kernels/cpu/norm.h"

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd/table.h"

namespace dew::kernels::cpu {

namespace {

// Rows whose gradients are taken together, while they are in the first cache; it divides kNormChunk.
constexpr std::int64_t kNormBlock = 4;

}  // namespace

void rms_norm_forward(const Tensor& x, const Tensor& weight, double eps, const Tensor& y,
                      const Tensor& inverse_rms) {
  visit_float(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t d = weight.numel();
    const T *px = x.data<T>(), *pw = weight.data<T>();
    T *py = y.data<T>(), *pr = inverse_rms.data<T>();
    const auto& ops = simd_ops<T>();
    parallel_rows(inverse_rms.numel(), d, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) pr[t] = ops.rms_forward(px + t * d, pw, eps, py + t * d, d);
    });
  });
}

void rms_norm_backward(const Tensor& x, const Tensor& weight, const Tensor& inverse_rms, const Tensor& dy,
                       const Target& dx, const Target& d_weight, const Tensor& partial) {
  const std::int64_t d = weight.numel(), rows = inverse_rms.numel(), chunks = partial.dim(0);
  double* sums = partial.data<double>();
  visit_float(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *px = x.data<T>(), *pw = weight.data<T>(), *pr = inverse_rms.data<T>(), *pd = dy.data<T>();
    T* out = dx.into.data<T>();
    const auto& ops = simd_ops<T>();
    parallel_rows(chunks, kNormChunk * d, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t chunk = begin; chunk < end; ++chunk) {
        std::fill_n(sums + chunk * d, d, 0.0);
        const std::int64_t stop = std::min(rows, (chunk + 1) * kNormChunk);
        for (std::int64_t block = chunk * kNormChunk; block < stop; block += kNormBlock) {
          const std::int64_t count = std::min(kNormBlock, stop - block);
          for (std::int64_t t = block; t < block + count; ++t)
            ops.rms_backward(px + t * d, pw, pr[t], pd + t * d, out + t * d, dx.accumulate, d);
          ops.rms_weight_rows(px + block * d, pr + block, pd + block * d, count, sums + chunk * d, d);
        }
      }
    });
  });
  for (std::int64_t chunk = 1; chunk < chunks; ++chunk)
    simd_ops<double>().add(sums, sums + chunk * d, sums, d);
  visit_float(d_weight.into.dtype(), [&](auto zero) {
    using R = decltype(zero);
    R* out = d_weight.into.data<R>();
    for (std::int64_t j = 0; j < d; ++j) {
      const double sum = chunks > 0 ? sums[j] : 0.0;
      out[j] = static_cast<R>(d_weight.accumulate ? static_cast<double>(out[j]) + sum : sum);
    }
  });
}

}  // namespace dew::kernels::cpu
