#include "kernels/dropout.h"

#include "host.h"

namespace dew::test {
namespace {

using kernels::Dropout;
using kernels::TokenPlaces;

/// The factor of one element, from the generator's definition.
double factor(const Dropout& d, std::int64_t row, std::int64_t position, std::int64_t element) {
  const std::int64_t group = element / 32, inside = element % 32;
  const std::uint64_t low =
      (static_cast<std::uint64_t>(position) << 32) + static_cast<std::uint64_t>(group * 8 + inside % 8);
  const std::uint32_t word =
      philox(d.key, low, static_cast<std::uint64_t>(row))[static_cast<std::size_t>(inside / 8)];
  return static_cast<double>(word) < d.rate * 0x1p32 ? 0 : 1 / (1 - d.rate);
}

constexpr Dropout kDrop{0x123456789ABCDEFull, 0.3};

TEST(Dropout, DrawsByRowPositionAndElementAlone) {
  Host host;
  const TokenPlaces places{3, 5, 7, 11};  // tokens from the fourth of the first row on
  for (DType dtype : kStored)
    for (std::int64_t d : {1, 7, 32, 33, 100}) {
      const std::int64_t tokens = 9;
      const Tensor x = host.random({tokens, d}, dtype, 1), y = host.random({tokens, d}, dtype, 2);
      const std::vector<double> in = values(x), before = values(y);
      std::vector<double> expected;
      for (std::int64_t t = 0; t < tokens; ++t)
        for (std::int64_t e = 0; e < d; ++e) {
          const auto i = static_cast<std::size_t>(t * d + e);
          expected.push_back(before[i] + in[i] * factor(kDrop, 7 + (3 + t) / 5, 11 + (3 + t) % 5, e));
        }

      kernels::dropout(host.stream, kDrop, places, x, {y, true});

      expect_close(y, expected, 4 * roundoff(dtype));
    }
}

TEST(Dropout, DropsItsShareAndKeepsTheMean) {
  Host host;
  constexpr std::int64_t kElements = 1 << 18;
  const Tensor x = host.tensor({64, kElements / 64}, DType::kF32, std::vector<double>(kElements, 1.0)),
               y = host.empty({64, kElements / 64}, DType::kF32);

  kernels::dropout(host.stream, kDrop, {0, 64, 0, 0}, x, {y, false});

  double sum = 0, dropped = 0;
  for (double value : values(y)) {
    sum += value;
    dropped += value == 0 ? 1 : 0;
  }
  // Six standard deviations of a share of 0.3 among 2^18.
  constexpr double kShareError = 6 * 0.46 / 512;
  EXPECT_NEAR(dropped / kElements, 0.3, kShareError);
  EXPECT_NEAR(sum / kElements, 1.0, kShareError / 0.7);
}

TEST(Dropout, DoesNotMindThreadsAndRefusesWhatDoesNotFit) {
  Host host;
  const Tensor x = host.random({300, 257}, DType::kF32, 1);
  expect_threads_do_not_matter([&] {
    const Tensor y = host.empty({300, 257}, DType::kF32);
    kernels::dropout(host.stream, kDrop, {0, 10, 0, 0}, x, {y, false});
    return std::vector<Tensor>{y};
  });
  EXPECT_THROW(kernels::dropout(host.stream, {1, 1.0}, {0, 10, 0, 0}, x, {x, false}), Error);
  EXPECT_THROW(kernels::dropout(host.stream, kDrop, {0, 0, 0, 0}, x, {x, false}), Error);
}

}  // namespace
}  // namespace dew::test
