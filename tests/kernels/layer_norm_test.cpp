#include "kernels/layer_norm.h"

#include <limits>

#include "host.h"

namespace dew::test {
namespace {

constexpr double kEps = 1e-5;
// As for RMSNorm, with one more difference: sums of D terms by lanes of 16, then a quotient and a root.
constexpr double kForwardRoundings = 64, kBackwardRoundings = 128;

struct Reference {
  std::vector<double> y, dx, d_weight, d_bias;
};

// x, dy [rows, d]; b empty for no bias.
Reference reference(const std::vector<double>& x, const std::vector<double>& w, const std::vector<double>& b,
                    const std::vector<double>& dy) {
  const std::size_t d = w.size(), rows = x.size() / d;
  const double count = static_cast<double>(d);
  Reference out{std::vector<double>(x.size()), std::vector<double>(x.size()), std::vector<double>(d),
                std::vector<double>(d)};
  for (std::size_t t = 0; t < rows; ++t) {
    double mean = 0, variance = 0, sum = 0, dot = 0;
    for (std::size_t j = 0; j < d; ++j) mean += x[t * d + j] / count;
    for (std::size_t j = 0; j < d; ++j) variance += (x[t * d + j] - mean) * (x[t * d + j] - mean) / count;
    const double r = 1 / std::sqrt(variance + kEps);
    for (std::size_t j = 0; j < d; ++j) {
      const std::size_t i = t * d + j;
      const double n = (x[i] - mean) * r;
      sum += dy[i] * w[j] / count;
      dot += dy[i] * w[j] * n / count;
      out.y[i] = n * w[j] + (b.empty() ? 0 : b[j]);
      out.d_weight[j] += dy[i] * n;
      out.d_bias[j] += dy[i];
    }
    for (std::size_t j = 0; j < d; ++j) {
      const std::size_t i = t * d + j;
      out.dx[i] = r * (dy[i] * w[j] - sum - (x[i] - mean) * r * dot);
    }
  }
  return out;
}

TEST(LayerNorm, MatchesTheReference) {
  Host host;
  for (DType dtype : kStored)
    for (bool biased : {true, false})
      for (const auto& [rows, d] :
           {std::pair{1, 2}, {3, 17}, {5, 33}, {70, 257}, {67, 1030}, {0, 1030}, {0, 5}, {2, 1}}) {
        const Tensor x = host.random({rows, d}, dtype, 1), w = host.random({d}, dtype, 2),
                     b = biased ? host.random({d}, dtype, 3) : Tensor{},
                     dy = host.random({rows, d}, dtype, 4), y = host.empty({rows, d}, dtype),
                     moments = host.empty({rows, 2}, real_of(dtype)), dx = host.empty({rows, d}, dtype),
                     before = host.random({d}, DType::kF64, 5), d_weight = host.clone(before),
                     d_bias = biased ? host.empty({d}, DType::kF64) : Tensor{};
        Reference expected =
            reference(values(x), values(w), biased ? values(b) : std::vector<double>{}, values(dy));
        // Of one element x - mean is a difference of equal numbers, and the root magnifies its rounding.
        const double magnified = d == 1 ? 1 / std::sqrt(kEps) : 1;

        kernels::layer_norm_forward(host.stream, x, w, b, kEps, y, moments);
        kernels::layer_norm_backward(host.stream, x, w, moments, dy, {dx, false}, {d_weight, true},
                                     {d_bias, false});

        const std::vector<double> old = values(before);
        for (std::size_t j = 0; j < old.size(); ++j) expected.d_weight[j] += old[j];
        expect_close(y, expected.y, kForwardRoundings * roundoff(dtype));
        expect_close(dx, expected.dx, kBackwardRoundings * magnified * roundoff(dtype));
        // Each of the rows' terms carries the rounding of its x.
        const double terms = static_cast<double>(rows + 1);
        expect_close(d_weight, expected.d_weight, kBackwardRoundings * terms * roundoff(dtype));
        if (biased) expect_close(d_bias, expected.d_bias, terms * roundoff(dtype));
      }
}

TEST(LayerNorm, AddsToAGradientThatIsThere) {
  Host host;
  const Tensor x = host.random({3, 33}, DType::kF64, 1), w = host.random({33}, DType::kF64, 2),
               dy = host.random({3, 33}, DType::kF64, 3), y = host.empty({3, 33}, DType::kF64),
               moments = host.empty({3, 2}, DType::kF64), dx = host.empty({3, 33}, DType::kF64),
               twice = host.empty({3, 33}, DType::kF64), d_weight = host.empty({33}, DType::kF64);
  kernels::layer_norm_forward(host.stream, x, w, {}, kEps, y, moments);
  kernels::layer_norm_backward(host.stream, x, w, moments, dy, {dx, false}, {d_weight, false}, {});
  kernels::layer_norm_backward(host.stream, x, w, moments, dy, {twice, false}, {d_weight, false}, {});
  kernels::layer_norm_backward(host.stream, x, w, moments, dy, {twice, true}, {d_weight, false}, {});

  std::vector<double> expected = values(dx);
  for (double& value : expected) value *= 2;
  expect_close(twice, expected, roundoff(DType::kF64));
}

TEST(LayerNorm, GivesTheSameBitsOnAnyThreadsAndAddresses) {
  Host host;
  const auto run = [&](bool shifted) {
    const auto place = [&](const Tensor& t) { return shifted ? host.shifted(t) : t; };
    const Tensor x = place(host.random({300, 257}, DType::kF32, 1)),
                 w = place(host.random({257}, DType::kF32, 2)), b = place(host.random({257}, DType::kF32, 3)),
                 dy = place(host.random({300, 257}, DType::kF32, 4)), y = host.empty({300, 257}, DType::kF32),
                 moments = host.empty({300, 2}, DType::kF32), dx = host.empty({300, 257}, DType::kF32),
                 d_weight = host.empty({257}, DType::kF32), d_bias = host.empty({257}, DType::kF32);
    kernels::layer_norm_forward(host.stream, x, w, b, kEps, y, moments);
    kernels::layer_norm_backward(host.stream, x, w, moments, dy, {dx, false}, {d_weight, false},
                                 {d_bias, false});
    return std::vector<Tensor>{y, dx, d_weight, d_bias};
  };
  expect_threads_do_not_matter([&] { return run(false); });
  const std::vector<Tensor> straight = run(false), moved = run(true);
  for (std::size_t i = 0; i < straight.size(); ++i) EXPECT_TRUE(same_bits(straight[i], moved[i])) << i;
}

TEST(LayerNorm, LetsNanThroughAndRefusesWhatDoesNotFit) {
  Host host;
  std::vector<double> numbers = draw(1, 40);
  numbers[25] = std::numeric_limits<double>::quiet_NaN();
  const Tensor x = host.tensor({2, 20}, DType::kF32, numbers), w = host.random({20}, DType::kF32, 2),
               y = host.empty({2, 20}, DType::kF32), moments = host.empty({2, 2}, DType::kF32);

  kernels::layer_norm_forward(host.stream, x, w, {}, kEps, y, moments);

  const std::vector<double> out = values(y);
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_FALSE(std::isnan(out[i]));
    EXPECT_TRUE(std::isnan(out[20 + i]));
  }
  EXPECT_THROW(
      kernels::layer_norm_forward(host.stream, x, host.random({19}, DType::kF32, 2), {}, kEps, y, moments),
      Error);
  EXPECT_THROW(
      kernels::layer_norm_forward(host.stream, x, w, host.random({19}, DType::kF32, 2), kEps, y, moments),
      Error);
  EXPECT_THROW(kernels::layer_norm_forward(host.stream, x, w, {}, kEps, y, host.empty({2}, DType::kF32)),
               Error);
}

}  // namespace
}  // namespace dew::test
