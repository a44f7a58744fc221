#include "kernels/cpu/pointwise.h"

#include <algorithm>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd/table.h"

namespace dew::kernels::cpu {

void add(const Tensor& a, const Tensor& b, const Tensor& y) {
  visit_compute(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *pa = a.data<T>(), *pb = b.data<T>();
    T* py = y.data<T>();
    const auto& ops = simd_ops<T>();
    parallel_flat(y.numel(),
                  [&](std::int64_t i, std::int64_t end) { ops.add(pa + i, pb + i, py + i, end - i); });
  });
}

namespace {

void cast_range(const float* x, double* y, std::int64_t n) {
  simd_table().f32_to_f64.cast(x, y, n);
}
void cast_range(const double* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i]);
}
void cast_range(const bf16* x, float* y, std::int64_t n) {
  simd_table().bf16_to_f32.cast(x, y, n);
}
void cast_range(const bf16* x, double* y, std::int64_t n) {
  simd_table().bf16_to_f64.cast(x, y, n);
}
void cast_range(const float* x, bf16* y, std::int64_t n) {
  simd_table().f32_to_bf16(x, y, n);
}
void cast_range(const double* x, bf16* y, std::int64_t n) {
  simd_table().f64_to_bf16(x, y, n);
}
template <class T>
void cast_range(const T* x, T* y, std::int64_t n) {
  std::copy_n(x, n, y);
}

}  // namespace

void cast(const Tensor& source, const Tensor& target) {
  visit_compute(source.dtype(), [&](auto from) {
    visit_compute(target.dtype(), [&](auto to) {
      const auto* x = source.data<decltype(from)>();
      auto* y = target.data<decltype(to)>();
      parallel_flat(target.numel(),
                    [=](std::int64_t i, std::int64_t end) { cast_range(x + i, y + i, end - i); });
    });
  });
}

void scale(const Tensor& x, double factor) {
  visit_float(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* px = x.data<T>();
    const auto& ops = real_ops<T>();
    parallel_flat(x.numel(), [&](std::int64_t i, std::int64_t end) { ops.scale(px + i, factor, end - i); });
  });
}

void lerp(const Tensor& average, const Tensor& value, double decay) {
  visit_float(average.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* pa = average.data<T>();
    const T* pv = value.data<T>();
    const auto& ops = real_ops<T>();
    parallel_flat(average.numel(),
                  [&](std::int64_t i, std::int64_t end) { ops.lerp(pa + i, pv + i, 1 - decay, end - i); });
  });
}

void swiglu_forward(const Tensor& gate, const Tensor& up, const Tensor& y) {
  visit_compute(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *pg = gate.data<T>(), *pu = up.data<T>();
    T* py = y.data<T>();
    const auto& ops = simd_ops<T>();
    parallel_flat(y.numel(), [&](std::int64_t i, std::int64_t end) {
      ops.swiglu_forward(pg + i, pu + i, py + i, end - i);
    });
  });
}

void swiglu_backward(const Tensor& gate, const Tensor& up, const Tensor& dy, const Target& d_gate,
                     const Target& d_up) {
  visit_compute(dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *pg = gate.data<T>(), *pu = up.data<T>(), *pd = dy.data<T>();
    T *out_gate = d_gate.into.data<T>(), *out_up = d_up.into.data<T>();
    const auto& ops = simd_ops<T>();
    parallel_flat(dy.numel(), [&](std::int64_t i, std::int64_t end) {
      ops.swiglu_backward(pg + i, pu + i, pd + i, out_gate + i, d_gate.accumulate, out_up + i,
                          d_up.accumulate, end - i);
    });
  });
}

}  // namespace dew::kernels::cpu
