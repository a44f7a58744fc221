#include "kernels/rope.h"

#include "kernels/cpu/rope.h"
#include "kernels/dispatch.h"

namespace dew::kernels {

void rope_table(Stream& stream, std::int64_t begin, std::int64_t end, double theta, const Tensor& table) {
  DEW_CHECK(table.shape().dims() == 2 && begin <= end && table.dim(0) == end - begin, begin, end,
            table.shape());
  DEW_CHECK(table.dim(1) % 2 == 0 && theta > 0, table.shape(), theta);
  KernelScope scope(stream, KernelKind::kRope, 2 * static_cast<double>(table.numel()),
                    static_cast<double>(table.bytes()));
  DEW_DISPATCH(stream, rope_table(begin, theta, table));
}

void rope(Stream& stream, const Tensor& x, const Tensor& table, RopeDirection direction, const Target& y) {
  DEW_CHECK(x.shape().dims() == 4 && x.dim(3) % 2 == 0, x.shape());
  DEW_CHECK(table.shape() == Shape({x.dim(1), x.dim(3)}), table.shape(), x.shape());
  DEW_CHECK(y.into.numel() == x.numel(), y.into.shape(), x.shape());
  DEW_CHECK(table.dtype() == x.dtype() && y.into.dtype() == x.dtype(), name_of(table.dtype()),
            name_of(x.dtype()), name_of(y.into.dtype()));
  DEW_CHECK(!y.accumulate || y.into.raw() == nullptr || y.into.raw() != x.raw(),
            "accumulates onto its own input");
  KernelScope scope(
      stream, KernelKind::kRope, 3 * static_cast<double>(x.numel()),
      static_cast<double>(x.bytes()) * (y.accumulate ? 3 : 2) + static_cast<double>(table.bytes()));
  DEW_DISPATCH(stream, rope(x, table, direction, y));
}

}  // namespace dew::kernels
