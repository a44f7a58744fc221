#include "kernels/dropout.h"

#include "kernels/cpu/dropout.h"
#include "kernels/dispatch.h"

namespace dew::kernels {

void dropout(Stream& stream, const Dropout& draw, const TokenPlaces& places, const Tensor& x,
             const Target& y) {
  // A position has 31 bits of the counter.
  constexpr std::int64_t kMostPositions = std::int64_t{1} << 31;
  DEW_CHECK(x.shape().dims() == 2 && y.into.numel() == x.numel() && y.into.dtype() == x.dtype(), x.shape(),
            y.into.shape());
  DEW_CHECK(draw.rate >= 0 && draw.rate < 1, draw.rate);
  DEW_CHECK(places.length >= 1 && places.first >= 0 && places.first_row >= 0 && places.first_position >= 0,
            places.length, places.first, places.first_row, places.first_position);
  DEW_CHECK(places.first_position + places.length <= kMostPositions, places.first_position, places.length);
  const KernelScope scope(stream, KernelKind::kPointwise, static_cast<double>(x.numel()),
                          static_cast<double>(x.bytes()) * (y.accumulate ? 3 : 2));
  DEW_DISPATCH(stream, dropout(draw, places, x, y));
}

}  // namespace dew::kernels
