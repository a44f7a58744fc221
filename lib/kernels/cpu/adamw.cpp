#include "kernels/cpu/adamw.h"

#include <cmath>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd/table.h"

namespace dew::kernels::cpu {

void adamw(const AdamWStep& step, const Tensor& gradient, const Tensor& w, const Tensor& m, const Tensor& v) {
  const double count = static_cast<double>(step.step);
  const AdamWConstants constants{
      .gradient_scale = step.gradient_scale,
      .decay = 1 - step.lr * step.weight_decay,
      .beta1 = step.beta1,
      .one_minus_beta1 = 1 - step.beta1,
      .beta2 = step.beta2,
      .one_minus_beta2 = 1 - step.beta2,
      .step_size = step.lr / (1 - std::pow(step.beta1, count)),
      .inverse_sqrt_correction = 1 / std::sqrt(1 - std::pow(step.beta2, count)),
      .eps = step.eps,
  };
  visit_float(w.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* pg = gradient.data<T>();
    T *pw = w.data<T>(), *pm = m.data<T>(), *pv = v.data<T>();
    const auto& ops = real_ops<T>();
    parallel_flat(w.numel(), [&](std::int64_t i, std::int64_t end) {
      ops.adamw(constants, pg + i, pw + i, pm + i, pv + i, end - i);
    });
  });
}

}  // namespace dew::kernels::cpu
