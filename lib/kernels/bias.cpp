#include "kernels/bias.h"

#include "kernels/cpu/bias.h"
#include "kernels/cpu/column_sums.h"
#include "kernels/dispatch.h"

namespace dew::kernels {

void add_bias(Stream& stream, const Tensor& x, const Tensor& bias, const Tensor& y) {
  DEW_CHECK(bias.shape().dims() == 1 && bias.numel() >= 1 && x.dim(-1) == bias.numel(), x.shape(),
            bias.shape());
  DEW_CHECK(y.numel() == x.numel(), x.shape(), y.shape());
  DEW_CHECK(x.dtype() == bias.dtype() && x.dtype() == y.dtype(), name_of(x.dtype()), name_of(bias.dtype()),
            name_of(y.dtype()));
  const KernelScope scope(stream, KernelKind::kPointwise, static_cast<double>(x.numel()),
                          2 * static_cast<double>(x.bytes()));
  DEW_DISPATCH(stream, add_bias(x, bias, y));
}

void bias_backward(Stream& stream, const Tensor& dy, const Target& d_bias) {
  const std::int64_t d = d_bias.into.numel();
  DEW_CHECK(d >= 1 && dy.dim(-1) == d, dy.shape(), d_bias.into.shape());
  DEW_CHECK(size_of(d_bias.into.dtype()) >= size_of(real_of(dy.dtype())), name_of(d_bias.into.dtype()),
            name_of(dy.dtype()));
  const KernelScope scope(stream, KernelKind::kPointwise, static_cast<double>(dy.numel()),
                          static_cast<double>(dy.bytes()));
  const Tensor sums =
      Tensor::empty(cpu::column_sums_shape(dy.numel() / d, d), real_of(dy.dtype()), stream, Owner::kBuffers);
  DEW_DISPATCH(stream, bias_backward(dy, d_bias, sums));
}

}  // namespace dew::kernels
