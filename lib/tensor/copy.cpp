#include "tensor/copy.h"

#include <algorithm>
#include <cstring>

namespace dew {

void copy(Stream& stream, const Tensor& source, const Tensor& target) {
  DEW_CHECK(source.numel() == target.numel(), source.shape(), target.shape());
  KernelScope scope(stream, KernelKind::kPointwise, 0, static_cast<double>(source.bytes() + target.bytes()));
  if (stream.device().is_meta() || source.numel() == 0) return;
  if (source.dtype() == target.dtype()) {
    std::memmove(target.raw(), source.raw(), source.bytes());
    return;
  }
  visit_compute(source.dtype(), [&](auto from) {
    visit_compute(target.dtype(), [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      const From* in = source.data<From>();
      std::transform(in, in + source.numel(), target.data<To>(),
                     [](From x) { return static_cast<To>(static_cast<Real<From>>(x)); });
    });
  });
}

void fill(Stream& stream, const Tensor& target, double value) {
  KernelScope scope(stream, KernelKind::kPointwise, 0, static_cast<double>(target.bytes()));
  if (stream.device().is_meta()) return;
  visit_compute(target.dtype(), [&](auto zero) {
    using T = decltype(zero);
    std::fill_n(target.data<T>(), target.numel(), static_cast<T>(value));
  });
}

double read_scalar(Stream& stream, const Tensor& tensor) {
  DEW_CHECK(tensor.numel() >= 1, tensor.shape());
  stream.synchronize();
  if (stream.device().is_meta()) return 0;
  return visit_float(tensor.dtype(),
                     [&](auto zero) { return static_cast<double>(*tensor.data<decltype(zero)>()); });
}

}  // namespace dew
