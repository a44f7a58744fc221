#include "kernels/layer_norm.h"

#include "kernels/cpu/column_sums.h"
#include "kernels/cpu/layer_norm.h"
#include "kernels/dispatch.h"

namespace dew::kernels {

namespace {

// Operations an element.
constexpr double kForwardFlops = 7, kBackwardFlops = 16;

void check(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& moments) {
  DEW_CHECK(weight.shape().dims() == 1 && weight.numel() >= 1 && x.dim(-1) == weight.numel(), x.shape(),
            weight.shape());
  DEW_CHECK(moments.numel() == 2 * (x.numel() / weight.numel()), x.shape(), moments.shape());
  DEW_CHECK(y.numel() == x.numel(), x.shape(), y.shape());
  DEW_CHECK(weight.dtype() == x.dtype() && y.dtype() == x.dtype() && moments.dtype() == real_of(x.dtype()),
            name_of(x.dtype()), name_of(weight.dtype()), name_of(y.dtype()), name_of(moments.dtype()));
}

void check_column(const Target& column, const Tensor& weight) {
  DEW_CHECK(column.into.numel() == weight.numel(), weight.shape(), column.into.shape());
  DEW_CHECK(size_of(column.into.dtype()) >= size_of(real_of(weight.dtype())), name_of(column.into.dtype()),
            name_of(weight.dtype()));
}

double bytes(const Tensor& x, int times) {
  return static_cast<double>(x.bytes()) * times;
}

}  // namespace

void layer_norm_forward(Stream& stream, const Tensor& x, const Tensor& weight, const Tensor& bias, double eps,
                        const Tensor& y, const Tensor& moments) {
  check(x, weight, y, moments);
  if (bias.defined())
    DEW_CHECK(bias.shape() == weight.shape() && bias.dtype() == x.dtype(), bias.shape(), weight.shape());
  const KernelScope scope(stream, KernelKind::kNorm, kForwardFlops * static_cast<double>(x.numel()),
                          bytes(x, 2) + bytes(weight, 2) + bytes(moments, 1));
  DEW_DISPATCH(stream, layer_norm_forward(x, weight, bias, eps, y, moments));
}

void layer_norm_backward(Stream& stream, const Tensor& x, const Tensor& weight, const Tensor& moments,
                         const Tensor& dy, const Target& dx, const Target& d_weight, const Target& d_bias) {
  check(x, weight, dy, moments);
  DEW_CHECK(dx.into.numel() == x.numel() && dx.into.dtype() == x.dtype(), x.shape(), dx.into.shape());
  check_column(d_weight, weight);
  if (d_bias.into.defined()) check_column(d_bias, weight);
  const KernelScope scope(
      stream, KernelKind::kNorm, kBackwardFlops * static_cast<double>(x.numel()),
      bytes(x, dx.accumulate ? 4 : 3) + bytes(weight, 1) + bytes(moments, 1) + bytes(d_weight.into, 2));
  const Shape sums = cpu::column_sums_shape(moments.numel() / 2, weight.numel());
  const Tensor weight_sums = Tensor::empty(sums, real_of(x.dtype()), stream, Owner::kBuffers);
  const Tensor bias_sums = Tensor::empty(d_bias.into.defined() ? sums : Shape{0, weight.numel()},
                                         real_of(x.dtype()), stream, Owner::kBuffers);
  DEW_DISPATCH(stream,
               layer_norm_backward(x, weight, moments, dy, dx, d_weight, d_bias, weight_sums, bias_sums));
}

}  // namespace dew::kernels
