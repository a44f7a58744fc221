#include "train/throughput.h"

#include <algorithm>

#include "base/timer.h"
#include "kernels/gemm.h"
#include "tensor/copy.h"

namespace dew {

double measure_peak(DType dtype, const HostGroup& ranks, Stream& stream) {
  constexpr std::int64_t kSize = 512;
  constexpr double kEnough = 0.03;  // seconds
  const Tensor a = Tensor::empty({kSize, kSize}, dtype, stream, Owner::kBuffers);
  const Tensor b = Tensor::empty({kSize, kSize}, dtype, stream, Owner::kBuffers);
  const Tensor c = Tensor::empty({kSize, kSize}, dtype, stream, Owner::kBuffers);
  fill(stream, a, 1);
  fill(stream, b, 1);
  const auto multiply = [&] {
    kernels::gemm(stream, a, kernels::Transpose::kNo, b, kernels::Transpose::kYes, {c});
    stream.synchronize();
  };
  multiply();  // the first call builds the library's kernels
  ranks.barrier();
  // The mean, not the best run: ranks that share a core take turns, and their peak is their share of it.
  int runs = 0;
  double seconds = 0;
  {
    ScopeTimer timer(seconds);
    const double begin = steady_seconds();
    do {
      multiply();
      ++runs;
    } while (steady_seconds() - begin < kEnough);
  }
  std::int64_t rate = static_cast<std::int64_t>(2.0 * kSize * kSize * kSize * runs / seconds);
  ranks.min({&rate, 1});
  return static_cast<double>(rate);
}

}  // namespace dew
