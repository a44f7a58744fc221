#include "kernels/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/cpu/rope.h"
#include "kernels/dispatch.h"

namespace dew::kernels {

std::vector<double> rope_frequencies(std::int64_t head_width, const RopeAngles& angles) {
  const RopeScaling& s = angles.scaling;
  std::vector<double> frequencies(static_cast<std::size_t>(head_width / 2));
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(head_width);
    const double plain = std::pow(angles.theta, exponent);
    frequencies[i] = plain;
    if (s.original == 0) continue;
    const double turns = s.original * plain / (2 * std::numbers::pi);
    const double kept = std::clamp((turns - s.low) / (s.high - s.low), 0.0, 1.0);
    frequencies[i] = kept * plain + (1 - kept) * plain / s.factor;
  }
  return frequencies;
}

void rope_table(Stream& stream, std::int64_t begin, std::int64_t end, const RopeAngles& angles,
                const Tensor& table) {
  DEW_CHECK(table.shape().dims() == 2 && begin <= end && table.dim(0) == end - begin, begin, end,
            table.shape());
  DEW_CHECK(table.dim(1) % 2 == 0 && angles.theta > 0, table.shape(), angles.theta);
  DEW_CHECK(angles.scaling.high > angles.scaling.low, angles.scaling.low, angles.scaling.high);
  KernelScope scope(stream, KernelKind::kRope, 2 * static_cast<double>(table.numel()),
                    static_cast<double>(table.bytes()));
  DEW_DISPATCH(stream, rope_table(begin, rope_frequencies(table.dim(1), angles), table));
}

void rope(Stream& stream, const Tensor& x, const Tensor& table, const Tensor& rows, RopeDirection direction,
          const Target& y) {
  DEW_CHECK(x.shape().dims() == 4 && x.dim(3) % 2 == 0, x.shape());
  DEW_CHECK(table.shape().dims() == 2 && table.dim(1) == x.dim(3), table.shape(), x.shape());
  if (rows.defined())
    DEW_CHECK(rows.dtype() == DType::kI32 && rows.numel() == x.dim(0) * x.dim(1), rows.shape(), x.shape());
  else
    DEW_CHECK(table.dim(0) == x.dim(1), table.shape(), x.shape());
  DEW_CHECK(y.into.numel() == x.numel(), y.into.shape(), x.shape());
  DEW_CHECK(table.dtype() == real_of(x.dtype()) && y.into.dtype() == x.dtype(), name_of(table.dtype()),
            name_of(x.dtype()), name_of(y.into.dtype()));
  DEW_CHECK(!y.accumulate || y.into.raw() == nullptr || y.into.raw() != x.raw(),
            "accumulates onto its own input");
  KernelScope scope(
      stream, KernelKind::kRope, 3 * static_cast<double>(x.numel()),
      static_cast<double>(x.bytes()) * (y.accumulate ? 3 : 2) + static_cast<double>(table.bytes()));
  DEW_DISPATCH(stream, rope(x, table, rows, direction, y));
}

}  // namespace dew::kernels
