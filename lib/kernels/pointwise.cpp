#include "kernels/pointwise.h"

#include "kernels/cpu/pointwise.h"
#include "kernels/dispatch.h"

namespace dew::kernels {

namespace {

// Operations an element, an exponential counted as one.
constexpr double kSwigluForwardFlops = 5, kSwigluBackwardFlops = 10;

void check_alike(const Tensor& a, const Tensor& b) {
  DEW_CHECK(a.numel() == b.numel(), a.shape(), b.shape());
  DEW_CHECK(a.dtype() == b.dtype(), name_of(a.dtype()), name_of(b.dtype()));
}

double elements(const Tensor& x) {
  return static_cast<double>(x.numel());
}
double bytes(const Tensor& x, int times) {
  return static_cast<double>(x.bytes()) * times;
}

}  // namespace

void add(Stream& stream, const Tensor& a, const Tensor& b, const Tensor& y) {
  check_alike(a, y);
  check_alike(b, y);
  KernelScope scope(stream, KernelKind::kPointwise, elements(y), bytes(y, 3));
  DEW_DISPATCH(stream, add(a, b, y));
}

void cast(Stream& stream, const Tensor& source, const Tensor& target) {
  DEW_CHECK(source.numel() == target.numel(), source.shape(), target.shape());
  const KernelScope scope(stream, KernelKind::kPointwise, 0, bytes(source, 1) + bytes(target, 1));
  DEW_DISPATCH(stream, cast(source, target));
}

void scale(Stream& stream, const Tensor& x, double factor) {
  KernelScope scope(stream, KernelKind::kPointwise, elements(x), bytes(x, 2));
  DEW_DISPATCH(stream, scale(x, factor));
}

void lerp(Stream& stream, const Tensor& average, const Tensor& value, double decay) {
  check_alike(average, value);
  KernelScope scope(stream, KernelKind::kPointwise, 3 * elements(average), bytes(average, 3));
  DEW_DISPATCH(stream, lerp(average, value, decay));
}

void swiglu_forward(Stream& stream, const Tensor& gate, const Tensor& up, const Tensor& y) {
  check_alike(gate, y);
  check_alike(up, y);
  KernelScope scope(stream, KernelKind::kActivation, kSwigluForwardFlops * elements(y), bytes(y, 3));
  DEW_DISPATCH(stream, swiglu_forward(gate, up, y));
}

void swiglu_backward(Stream& stream, const Tensor& gate, const Tensor& up, const Tensor& dy,
                     const Target& d_gate, const Target& d_up) {
  check_alike(gate, dy);
  check_alike(up, dy);
  check_alike(d_gate.into, dy);
  check_alike(d_up.into, dy);
  const int read_back = (d_gate.accumulate ? 1 : 0) + (d_up.accumulate ? 1 : 0);
  KernelScope scope(stream, KernelKind::kActivation, kSwigluBackwardFlops * elements(dy),
                    bytes(dy, 5 + read_back));
  DEW_DISPATCH(stream, swiglu_backward(gate, up, dy, d_gate, d_up));
}

}  // namespace dew::kernels
