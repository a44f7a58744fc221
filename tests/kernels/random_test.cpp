#include "kernels/random.h"

#include <numbers>

#include "host.h"

namespace dew::test {
namespace {

constexpr std::uint64_t kKey = 0x9E3779B97F4A7C15;
// Logarithm, root, sine and product to about 1 ulp each, of numbers below 9.
constexpr double kTolerance = 16 * 0x1p-53;

double reference(std::int64_t index) {
  const PhiloxBlock w = philox(kKey, static_cast<std::uint64_t>(index / 2), 0);
  const auto fraction = [](std::uint32_t high, std::uint32_t low) {
    return std::ldexp(static_cast<double>((std::uint64_t{high} << 32 | low) >> 12), -52);
  };
  const double radius = std::sqrt(-2 * std::log(1 - fraction(w[0], w[1])));
  const double angle = 2 * std::numbers::pi * fraction(w[2], w[3]);
  return radius * (index % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

TEST(FillNormal, MatchesBoxMullerOnPhilox) {
  Host host;
  for (std::int64_t begin : {std::int64_t{0}, std::int64_t{5}, (std::int64_t{1} << 33) - 21}) {
    const Tensor x = host.empty({10001}, DType::kF64);
    kernels::fill_normal(host.stream, kKey, begin, 1, x);
    std::vector<double> expected;
    for (std::int64_t i = 0; i < 10001; ++i) expected.push_back(reference(begin + i));
    expect_close(x, expected, kTolerance);
  }
}

TEST(FillNormal, RoundsAndScalesTheSameNumbers) {
  Host host;
  const Tensor wide = host.empty({257}, DType::kF64), narrow = host.empty({257}, DType::kF32);
  kernels::fill_normal(host.stream, kKey, 3, 0.02, wide);
  kernels::fill_normal(host.stream, kKey, 3, 0.02, narrow);
  for (std::int64_t i = 0; i < 257; ++i)
    EXPECT_EQ(narrow.data<float>()[i], static_cast<float>(wide.data<double>()[i]));
}

TEST(FillNormal, AValueDependsOnItsGlobalIndexAlone) {
  Host host;
  for (DType dtype : kFloats) {
    const Tensor whole = host.empty({300}, dtype);
    kernels::fill_normal(host.stream, kKey, 0, 1, whole);
    for (std::int64_t begin : {1, 2, 15, 16, 17, 31})
      for (std::int64_t n : {0, 1, 2, 16, 33, 257}) {
        const Tensor part = host.empty({n}, dtype);
        kernels::fill_normal(host.stream, kKey, begin, 1, part);
        EXPECT_TRUE(same_bits(part, whole.range(begin, begin + n))) << begin << ' ' << n;
      }
  }
}

TEST(FillNormal, ThreadsDoNotChangeBits) {
  Host host;
  for (DType dtype : kFloats)
    expect_threads_do_not_matter([&] {
      const Tensor x = host.empty({40001}, dtype);
      kernels::fill_normal(host.stream, kKey, 9, 1, x);
      return std::vector<Tensor>{x};
    });
}

TEST(FillNormal, HasTheMomentsOfANormal) {
  Host host;
  const std::int64_t n = 100000;
  const Tensor x = host.empty({n}, DType::kF64);
  kernels::fill_normal(host.stream, kKey, 0, 1, x);
  double mean = 0, square = 0, fourth = 0, neighbours = 0;
  const double* z = x.data<double>();
  for (std::int64_t i = 0; i < n; ++i) {
    mean += z[i];
    square += z[i] * z[i];
    fourth += z[i] * z[i] * z[i] * z[i];
    neighbours += z[i] * z[(i + 1) % n];
  }
  // Five standard errors: of the mean 1, of the square sqrt(2), of the fourth power sqrt(96), over sqrt(n).
  const double count = static_cast<double>(n), error = 5 / std::sqrt(count);
  EXPECT_NEAR(mean / count, 0, error);
  EXPECT_NEAR(square / count, 1, error * std::sqrt(2.0));
  EXPECT_NEAR(fourth / count, 3, error * std::sqrt(96.0));
  EXPECT_NEAR(neighbours / count, 0, error);
}

}  // namespace
}  // namespace dew::test
