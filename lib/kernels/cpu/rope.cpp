#include "kernels/cpu/rope.h"

#include <cmath>
#include <vector>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd/table.h"

namespace dew::kernels::cpu {

namespace {

constexpr std::int64_t kSinCosCost = 16;  ///< elements of plain arithmetic that take as long

}  // namespace

void rope_table(std::int64_t begin, const std::vector<double>& frequencies, const Tensor& table) {
  const std::int64_t width = table.dim(1), half = width / 2;
  visit_float(table.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* out = table.data<T>();
    parallel_rows(table.dim(0), width * kSinCosCost, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t l = first; l < last; ++l) {
        T* row = out + l * width;
        for (std::int64_t i = 0; i < half; ++i) {
          const double angle = static_cast<double>(begin + l) * frequencies[static_cast<std::size_t>(i)];
          row[i] = static_cast<T>(std::cos(angle));
          row[half + i] = static_cast<T>(std::sin(angle));
        }
      }
    });
  });
}

void rope(const Tensor& x, const Tensor& table, const Tensor& rows, RopeDirection direction,
          const Target& y) {
  const std::int32_t* row = rows.defined() ? rows.data<std::int32_t>() : nullptr;
  for (std::int64_t t = 0; row != nullptr && t < rows.numel(); ++t)
    DEW_CHECK(row[t] >= 0 && row[t] < table.dim(0), t, row[t], table.shape());
  const std::int64_t length = x.dim(1), heads = x.dim(2), width = x.dim(3);
  visit_compute(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* in = x.data<T>();
    const Real<T>* angles = table.data<Real<T>>();
    T* out = y.into.data<T>();
    const auto& ops = simd_ops<T>();
    const bool inverse = direction == RopeDirection::kInverse;
    parallel_rows(x.dim(0) * length, heads * width, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) {
        const Real<T>* cosine = angles + (row != nullptr ? row[t] : t % length) * width;
        const std::int64_t at = t * heads * width;
        ops.rope_heads(in + at, cosine, cosine + width / 2, inverse, out + at, y.accumulate, heads,
                       width / 2);
      }
    });
  });
}

}  // namespace dew::kernels::cpu
