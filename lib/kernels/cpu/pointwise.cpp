#include "kernels/cpu/pointwise.h"

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd/table.h"

namespace dew::kernels::cpu {

void add(const Tensor& a, const Tensor& b, const Tensor& y) {
  visit_float(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *pa = a.data<T>(), *pb = b.data<T>();
    T* py = y.data<T>();
    const auto& ops = simd_ops<T>();
    parallel_flat(y.numel(),
                  [&](std::int64_t i, std::int64_t end) { ops.add(pa + i, pb + i, py + i, end - i); });
  });
}

void scale(const Tensor& x, double factor) {
  visit_float(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* px = x.data<T>();
    const auto& ops = simd_ops<T>();
    parallel_flat(x.numel(), [&](std::int64_t i, std::int64_t end) { ops.scale(px + i, factor, end - i); });
  });
}

void lerp(const Tensor& average, const Tensor& value, double decay) {
  visit_float(average.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* pa = average.data<T>();
    const T* pv = value.data<T>();
    const auto& ops = simd_ops<T>();
    parallel_flat(average.numel(),
                  [&](std::int64_t i, std::int64_t end) { ops.lerp(pa + i, pv + i, 1 - decay, end - i); });
  });
}

void swiglu_forward(const Tensor& gate, const Tensor& up, const Tensor& y) {
  visit_float(y.dtype(), [&](auto zero) {
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
  visit_float(dy.dtype(), [&](auto zero) {
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
