#include "kernels/gelu.h"

#include <limits>

#include "host.h"

namespace dew::test {
namespace {

using kernels::Gelu;

long double phi(long double x) {
  return std::erfc(-x / std::sqrt(2.0L)) / 2;
}
long double density(long double x) {
  return std::exp(-x * x / 2) / std::sqrt(2 * 3.14159265358979323846264L);
}

/// Value and derivative by the formulas.
std::pair<long double, long double> reference(Gelu kind, long double x) {
  if (kind == Gelu::kExact) return {x * phi(x), phi(x) + x * density(x)};
  const long double c = std::sqrt(2 / 3.14159265358979323846264L), u = c * (x + 0.044715L * x * x * x);
  const long double t = std::tanh(u), inner = c * (1 + 3 * 0.044715L * x * x);
  return {x * (1 + t) / 2, (1 + t) / 2 + x * (1 - t * t) * inner / 2};
}

// The tail is exp(-x^2 / 2): the argument's roundings are magnified by its size.
double roundings(double x) {
  return 32 + 2 * x * x;
}

TEST(Gelu, MatchesItsFormulasOverItsRange) {
  Host host;
  constexpr int kCount = 4001;
  std::vector<double> points;
  for (int i = 0; i < kCount; ++i) points.push_back(static_cast<float>(-13.0 + 26.0 * i / (kCount - 1)));
  for (DType dtype : kStored)
    for (Gelu kind : {Gelu::kExact, Gelu::kTanh}) {
      const Tensor x = host.tensor({kCount}, dtype, points),
                   ones = host.tensor({kCount}, dtype, std::vector<double>(kCount, 1.0)),
                   y = host.empty({kCount}, dtype), dx = host.empty({kCount}, dtype);

      kernels::gelu_forward(host.stream, kind, x, y);
      kernels::gelu_backward(host.stream, kind, x, ones, {dx, false});

      const std::vector<double> out = values(y), slopes = values(dx);
      for (std::size_t i = 0; i < points.size(); ++i) {
        const auto [value, slope] = reference(kind, points[i]);
        const double tolerance = roundings(points[i]) * roundoff(dtype);
        // Relative in the exact form's tail as well; what f32 cannot hold rounds to 0.
        const double least = dtype == DType::kF64 ? 1e-300 : 1e-30;
        const double scale = kind == Gelu::kExact ? std::abs(static_cast<double>(value)) + least : 1.0;
        ASSERT_NEAR(out[i], static_cast<double>(value), tolerance * scale + least) << points[i];
        ASSERT_NEAR(slopes[i], static_cast<double>(slope), tolerance) << points[i];
      }
    }
}

TEST(Gelu, KeepsItsLimits) {
  Host host;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (DType dtype : kStored)
    for (Gelu kind : {Gelu::kExact, Gelu::kTanh}) {
      const Tensor x = host.tensor({5}, dtype, {0, 1000, -1000, kInf, std::nan("")}),
                   y = host.empty({5}, dtype);
      kernels::gelu_forward(host.stream, kind, x, y);
      const std::vector<double> out = values(y);
      EXPECT_EQ(out[0], 0);
      EXPECT_EQ(out[1], 1000);
      EXPECT_EQ(out[2], 0);
      EXPECT_EQ(out[3], kInf);
      EXPECT_TRUE(std::isnan(out[4]));
    }
}

TEST(Gelu, AddsToAGradientAndDoesNotMindThreads) {
  Host host;
  for (Gelu kind : {Gelu::kExact, Gelu::kTanh}) {
    const Tensor x = host.random({40001}, DType::kF32, 1), dy = host.random({40001}, DType::kF32, 2);
    expect_threads_do_not_matter([&] {
      const Tensor y = host.empty({40001}, DType::kF32), dx = host.random({40001}, DType::kF32, 3);
      kernels::gelu_forward(host.stream, kind, x, y);
      kernels::gelu_backward(host.stream, kind, x, dy, {dx, true});
      return std::vector<Tensor>{y, dx};
    });
    const Tensor dx = host.random({40001}, DType::kF32, 3), alone = host.empty({40001}, DType::kF32);
    const std::vector<double> before = values(dx);
    kernels::gelu_backward(host.stream, kind, x, dy, {dx, true});
    kernels::gelu_backward(host.stream, kind, x, dy, {alone, false});
    std::vector<double> sum = values(alone);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += before[i];
    expect_close(dx, sum, 2 * roundoff(DType::kF32));
  }
}

}  // namespace
}  // namespace dew::test
