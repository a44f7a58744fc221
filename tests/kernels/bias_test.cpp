#include "kernels/bias.h"

#include "host.h"

namespace dew::test {
namespace {

TEST(Bias, IsAddedToEveryRowAndItsGradientIsTheirSum) {
  Host host;
  for (DType dtype : kStored)
    for (const auto& [rows, d] : {std::pair{0, 3}, {1, 1}, {5, 17}, {131, 33}, {70, 1030}}) {
      const Tensor x = host.random({rows, d}, dtype, 1), b = host.random({d}, dtype, 2),
                   y = host.empty({rows, d}, dtype), before = host.random({d}, DType::kF64, 3),
                   d_bias = host.clone(before);
      const std::vector<double> in = values(x), bias = values(b);
      std::vector<double> sum = values(before), shifted;
      for (std::size_t i = 0; i < in.size(); ++i) {
        shifted.push_back(in[i] + bias[i % bias.size()]);
        sum[i % bias.size()] += in[i];
      }

      kernels::add_bias(host.stream, x, b, y);
      kernels::bias_backward(host.stream, x, {d_bias, true});

      expect_close(y, shifted, roundoff(dtype));
      // 64 terms, each below 2, are summed in the format they are computed in, these sums in f64.
      expect_close(d_bias, sum, 131 * 8 * roundoff(real_of(dtype)));
    }
}

TEST(Bias, DoesNotMindThreadsAndRefusesWhatDoesNotFit) {
  Host host;
  const Tensor x = host.random({400, 257}, DType::kF32, 1), b = host.random({257}, DType::kF32, 2);
  expect_threads_do_not_matter([&] {
    const Tensor y = host.empty({400, 257}, DType::kF32), d_bias = host.empty({257}, DType::kF32);
    kernels::add_bias(host.stream, x, b, y);
    kernels::bias_backward(host.stream, x, {d_bias, false});
    return std::vector<Tensor>{y, d_bias};
  });
  EXPECT_THROW(kernels::add_bias(host.stream, x, host.random({3}, DType::kF32, 2), x), Error);
  EXPECT_THROW(kernels::bias_backward(host.stream, x, {host.empty({3}, DType::kF32), false}), Error);
}

}  // namespace
}  // namespace dew::test
