#include "kernels/heads.h"

#include "kernels/cpu/heads.h"
#include "kernels/dispatch.h"

namespace dew::kernels {

namespace {

void check_heads(const Tensor& all, std::span<const std::int64_t> heads, const Tensor& chosen) {
  DEW_CHECK(all.shape().dims() == 4 && chosen.shape().dims() == 4, all.shape(), chosen.shape());
  DEW_CHECK(all.dim(0) == chosen.dim(0) && all.dim(1) == chosen.dim(1) && all.dim(3) == chosen.dim(3),
            all.shape(), chosen.shape());
  DEW_CHECK(chosen.dim(2) == static_cast<std::int64_t>(heads.size()), chosen.shape(), heads.size());
  DEW_CHECK(
      all.dtype() == chosen.dtype() && (real_of(all.dtype()) == DType::kF32 || all.dtype() == DType::kF64),
      name_of(all.dtype()), name_of(chosen.dtype()));
  for (std::int64_t head : heads) DEW_CHECK(head >= 0 && head < all.dim(2), head, all.shape());
}

}  // namespace

void select_heads(Stream& stream, const Tensor& x, std::span<const std::int64_t> heads, const Tensor& y) {
  check_heads(x, heads, y);
  KernelScope scope(stream, KernelKind::kPointwise, 0, 2 * static_cast<double>(y.bytes()));
  DEW_DISPATCH(stream, select_heads(x, heads, y));
}

void select_heads_backward(Stream& stream, const Tensor& dy, std::span<const std::int64_t> heads,
                           const Target& dx) {
  check_heads(dx.into, heads, dy);
  const double zeroed = dx.accumulate ? 0 : static_cast<double>(dx.into.bytes());
  KernelScope scope(stream, KernelKind::kPointwise, static_cast<double>(dy.numel()),
                    3 * static_cast<double>(dy.bytes()) + zeroed);
  DEW_DISPATCH(stream, select_heads_backward(dy, heads, dx));
}

}  // namespace dew::kernels
