#include "kernels/cpu/dropout.h"

#include "kernels/cpu/parallel.h"

namespace dew::kernels::cpu {

DropoutDraw draw_of(const Dropout& dropout, std::int64_t row) {
  return {.key = dropout.key, .row = row, .bound = dropout.rate * 0x1p32, .scale = 1 / (1 - dropout.rate)};
}

void dropout(const Dropout& draw, const TokenPlaces& places, const Tensor& x, const Target& y) {
  constexpr std::int64_t kDrawCost = 4;  // elements of plain arithmetic that take as long
  const std::int64_t d = x.dim(1);
  visit_compute(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* in = x.data<T>();
    T* out = y.into.data<T>();
    const auto& ops = simd_ops<T>();
    parallel_rows(x.dim(0), d * kDrawCost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) {
        const std::int64_t token = places.first + t;
        ops.dropout_line(draw_of(draw, places.first_row + token / places.length),
                         places.first_position + token % places.length, 0, in + t * d, out + t * d,
                         y.accumulate, d);
      }
    });
  });
}

}  // namespace dew::kernels::cpu
