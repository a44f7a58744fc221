#include "kernels/cpu/layer_norm.h"

#include "kernels/cpu/column_sums.h"
#include "kernels/cpu/simd/table.h"

namespace dew::kernels::cpu {

namespace {

/// [T, 2] as one Moments a token.
template <class T>
Moments<Real<T>>* moments_of(const Tensor& moments) {
  using R = Real<T>;
  static_assert(sizeof(Moments<R>) == 2 * sizeof(R));
  return reinterpret_cast<Moments<R>*>(moments.data<R>());
}

}  // namespace

void layer_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps,
                        const Tensor& y, const Tensor& moments) {
  visit_compute(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t d = weight.numel();
    const T *px = x.data<T>(), *pw = weight.data<T>(), *pb = bias.defined() ? bias.data<T>() : nullptr;
    T* py = y.data<T>();
    Moments<Real<T>>* out = moments_of<T>(moments);
    const auto& ops = simd_ops<T>();
    parallel_rows(moments.numel() / 2, d, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t)
        out[t] = ops.layer_norm_forward(px + t * d, pw, pb, eps, py + t * d, d);
    });
  });
}

void layer_norm_backward(const Tensor& x, const Tensor& weight, const Tensor& moments, const Tensor& dy,
                         const Target& dx, const Target& d_weight, const Target& d_bias,
                         const Tensor& weight_sums, const Tensor& bias_sums) {
  const std::int64_t d = weight.numel(), rows = moments.numel() / 2;
  const bool biased = d_bias.into.defined();
  clear_sums(weight_sums);
  if (biased) clear_sums(bias_sums);
  visit_compute(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *px = x.data<T>(), *pw = weight.data<T>(), *pd = dy.data<T>();
    const Moments<Real<T>>* kept = moments_of<T>(moments);
    T* out = dx.into.data<T>();
    Real<T>*sums = weight_sums.data<Real<T>>(), *shifts = biased ? bias_sums.data<Real<T>>() : nullptr;
    const auto& ops = simd_ops<T>();
    for_chunked_rows(rows, d, [&](std::int64_t row, std::int64_t chunk) {
      ops.layer_norm_backward(px + row * d, pw, kept[row], pd + row * d, out + row * d, dx.accumulate,
                              sums + chunk * d, biased ? shifts + chunk * d : nullptr, d);
    });
  });
  finish_sums(weight_sums, d_weight);
  if (biased) finish_sums(bias_sums, d_bias);
}

}  // namespace dew::kernels::cpu
