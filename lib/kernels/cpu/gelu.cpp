#include "kernels/cpu/gelu.h"

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd/table.h"

namespace dew::kernels::cpu {

void gelu_forward(Gelu kind, const Tensor& x, const Tensor& y) {
  visit_compute(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* px = x.data<T>();
    T* py = y.data<T>();
    const auto& ops = simd_ops<T>();
    parallel_flat(y.numel(), [&](std::int64_t i, std::int64_t end) {
      ops.gelu_forward(kind == Gelu::kExact, px + i, py + i, end - i);
    });
  });
}

void gelu_backward(Gelu kind, const Tensor& x, const Tensor& dy, const Target& dx) {
  visit_compute(dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *px = x.data<T>(), *pd = dy.data<T>();
    T* out = dx.into.data<T>();
    const auto& ops = simd_ops<T>();
    parallel_flat(dy.numel(), [&](std::int64_t i, std::int64_t end) {
      ops.gelu_backward(kind == Gelu::kExact, px + i, pd + i, out + i, dx.accumulate, end - i);
    });
  });
}

}  // namespace dew::kernels::cpu
