#include "kernels/cpu/random.h"

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd/table.h"

namespace dew::kernels::cpu {

void fill_normal(std::uint64_t key, std::int64_t begin, double stddev, const Tensor& x) {
  visit_float(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* out = x.data<T>();
    const auto& ops = real_ops<T>();
    parallel_flat(x.numel(), [&](std::int64_t i, std::int64_t end) {
      ops.fill_normal(key, begin + i, stddev, out + i, end - i);
    });
  });
}

}  // namespace dew::kernels::cpu
