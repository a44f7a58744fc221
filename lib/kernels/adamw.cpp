#include "kernels/adamw.h"

#include "kernels/cpu/adamw.h"
#include "kernels/dispatch.h"

namespace dew::kernels {

namespace {

constexpr double kFlops = 16;     ///< an element
constexpr double kTransfers = 7;  ///< gradient, w, m and v read, the last three written

}  // namespace

void adamw(Stream& stream, const AdamWStep& step, const Tensor& gradient, const Tensor& w, const Tensor& m,
           const Tensor& v) {
  DEW_CHECK(step.step >= 1, step.step);
  for (const Tensor* other : {&gradient, &m, &v})
    DEW_CHECK(other->numel() == w.numel() && other->dtype() == w.dtype(), other->shape(), w.shape(),
              name_of(other->dtype()), name_of(w.dtype()));
  KernelScope scope(stream, KernelKind::kOptimizer, kFlops * static_cast<double>(w.numel()),
                    kTransfers * static_cast<double>(w.bytes()));
  DEW_DISPATCH(stream, adamw(step, gradient, w, m, v));
}

}  // namespace dew::kernels
