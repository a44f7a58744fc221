#include "kernels/random.h"

#include "kernels/cpu/random.h"
#include "kernels/dispatch.h"

namespace dew::kernels {

namespace {

constexpr double kFlops = 40;  ///< an element, integer operations left out

}  // namespace

void fill_normal(Stream& stream, std::uint64_t key, std::int64_t begin, double stddev, const Tensor& x) {
  DEW_CHECK(begin >= 0, begin);
  KernelScope scope(stream, KernelKind::kRandom, kFlops * static_cast<double>(x.numel()),
                    static_cast<double>(x.bytes()));
  DEW_DISPATCH(stream, fill_normal(key, begin, stddev, x));
}

}  // namespace dew::kernels
