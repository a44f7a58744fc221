#include "kernels/gelu.h"

#include "kernels/cpu/gelu.h"
#include "kernels/dispatch.h"

namespace dew::kernels {

namespace {

// Operations an element, an exponential counted as one.
constexpr double kForwardFlops = 10, kBackwardFlops = 16;

void check_alike(const Tensor& a, const Tensor& b) {
  DEW_CHECK(a.numel() == b.numel(), a.shape(), b.shape());
  DEW_CHECK(a.dtype() == b.dtype(), name_of(a.dtype()), name_of(b.dtype()));
}

}  // namespace

void gelu_forward(Stream& stream, Gelu kind, const Tensor& x, const Tensor& y) {
  check_alike(x, y);
  const KernelScope scope(stream, KernelKind::kActivation, kForwardFlops * static_cast<double>(y.numel()),
                          2 * static_cast<double>(y.bytes()));
  DEW_DISPATCH(stream, gelu_forward(kind, x, y));
}

void gelu_backward(Stream& stream, Gelu kind, const Tensor& x, const Tensor& dy, const Target& dx) {
  check_alike(x, dy);
  check_alike(dx.into, dy);
  const KernelScope scope(stream, KernelKind::kActivation, kBackwardFlops * static_cast<double>(dy.numel()),
                          static_cast<double>(dy.bytes()) * (dx.accumulate ? 4 : 3));
  DEW_DISPATCH(stream, gelu_backward(kind, x, dy, dx));
}

}  // namespace dew::kernels
