#include "kernels/norm.h"

#include "kernels/cpu/column_sums.h"
#include "kernels/cpu/norm.h"
#include "kernels/dispatch.h"

namespace dew::kernels {

namespace {

// Operations an element.
constexpr double kForwardFlops = 4, kBackwardFlops = 11;

void check_norm(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& inverse_rms) {
  DEW_CHECK(x.shape().dims() >= 1 && weight.shape().dims() == 1, x.shape(), weight.shape());
  DEW_CHECK(weight.numel() >= 1 && x.dim(-1) == weight.numel(), x.shape(), weight.shape());
  DEW_CHECK(inverse_rms.numel() == x.numel() / weight.numel(), x.shape(), inverse_rms.shape());
  DEW_CHECK(y.numel() == x.numel(), x.shape(), y.shape());
  DEW_CHECK(
      weight.dtype() == x.dtype() && y.dtype() == x.dtype() && inverse_rms.dtype() == real_of(x.dtype()),
      name_of(x.dtype()), name_of(weight.dtype()), name_of(y.dtype()), name_of(inverse_rms.dtype()));
}

double bytes(const Tensor& x, int times) {
  return static_cast<double>(x.bytes()) * times;
}

}  // namespace

void rms_norm_forward(Stream& stream, const Tensor& x, const Tensor& weight, double eps, const Tensor& y,
                      const Tensor& inverse_rms) {
  check_norm(x, weight, y, inverse_rms);
  KernelScope scope(stream, KernelKind::kNorm, kForwardFlops * static_cast<double>(x.numel()),
                    bytes(x, 2) + bytes(weight, 1) + bytes(inverse_rms, 1));
  DEW_DISPATCH(stream, rms_norm_forward(x, weight, eps, y, inverse_rms));
}

void rms_norm_backward(Stream& stream, const Tensor& x, const Tensor& weight, const Tensor& inverse_rms,
                       const Tensor& dy, const Target& dx, const Target& d_weight) {
  check_norm(x, weight, dy, inverse_rms);
  DEW_CHECK(dx.into.numel() == x.numel() && dx.into.dtype() == x.dtype(), x.shape(), dx.into.shape());
  DEW_CHECK(d_weight.into.numel() == weight.numel(), weight.shape(), d_weight.into.shape());
  DEW_CHECK(size_of(d_weight.into.dtype()) >= size_of(real_of(x.dtype())), name_of(d_weight.into.dtype()),
            name_of(x.dtype()));
  KernelScope scope(stream, KernelKind::kNorm, kBackwardFlops * static_cast<double>(x.numel()),
                    bytes(x, dx.accumulate ? 4 : 3) + bytes(weight, 1) + bytes(inverse_rms, 1) +
                        bytes(d_weight.into, d_weight.accumulate ? 2 : 1));
  const Tensor sums = Tensor::empty(cpu::column_sums_shape(inverse_rms.numel(), weight.numel()),
                                    real_of(x.dtype()), stream, Owner::kBuffers);
  DEW_DISPATCH(stream, rms_norm_backward(x, weight, inverse_rms, dy, dx, d_weight, sums));
}

}  // namespace dew::kernels
