#include "kernels/strided.h"

#include "kernels/cpu/strided.h"
#include "kernels/dispatch.h"

namespace dew::kernels {
namespace {

using Extents = std::array<std::int64_t, 4>;

std::int64_t count_of(const Extents& extents) {
  return extents[0] * extents[1] * extents[2] * extents[3];
}

void check_view(const Extents& extents, const StridedView& view) {
  std::int64_t last = view.offset;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    DEW_CHECK(extents[d] >= 0 && view.strides[d] >= 0, extents[d], view.strides[d]);
    last += (extents[d] - 1) * view.strides[d];
  }
  DEW_CHECK(view.offset >= 0 && last < view.tensor.numel(), view.offset, last, view.tensor.shape());
  DEW_CHECK(view.strides[3] == 1 || extents[3] == 1, view.strides[3]);
}

}  // namespace

void copy_strided(Stream& stream, const Extents& extents, const StridedView& from, const StridedView& to,
                  bool accumulate) {
  DEW_CHECK(from.tensor.dtype() == to.tensor.dtype(), name_of(from.tensor.dtype()),
            name_of(to.tensor.dtype()));
  if (count_of(extents) == 0) return;
  check_view(extents, from);
  check_view(extents, to);
  const double bytes =
      static_cast<double>(count_of(extents)) * static_cast<double>(size_of(from.tensor.dtype()));
  KernelScope scope(stream, KernelKind::kPointwise, accumulate ? static_cast<double>(count_of(extents)) : 0,
                    bytes * (accumulate ? 3 : 2));
  DEW_DISPATCH(stream, copy_strided(extents, from, to, accumulate));
}

void merge_attention(Stream& stream, const Tensor& o_part, const Tensor& log_sum_exp_part, const Tensor& o,
                     const Tensor& log_sum_exp) {
  DEW_CHECK(o.shape().dims() == 4 && o.shape() == o_part.shape() && o.dtype() == o_part.dtype(), o.shape(),
            o_part.shape());
  DEW_CHECK(log_sum_exp.shape() == Shape({o.dim(0), o.dim(2), o.dim(1)}), log_sum_exp.shape(), o.shape());
  DEW_CHECK(log_sum_exp.shape() == log_sum_exp_part.shape() && log_sum_exp.dtype() == real_of(o.dtype()) &&
                log_sum_exp_part.dtype() == real_of(o.dtype()),
            log_sum_exp_part.shape(), name_of(log_sum_exp.dtype()));
  KernelScope scope(stream, KernelKind::kPointwise, 3 * static_cast<double>(o.numel()),
                    3 * static_cast<double>(o.bytes() + log_sum_exp.bytes()));
  DEW_DISPATCH(stream, merge_attention(o_part, log_sum_exp_part, o, log_sum_exp));
}

}  // namespace dew::kernels
