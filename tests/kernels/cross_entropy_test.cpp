#include "kernels/cross_entropy.h"

#include <limits>

#include "host.h"

namespace dew::test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
// A loss of some units from f32 logits: exp is good to 1.1 ulp and errors average out in the f64 sum.
constexpr double kRoundings = 16;
constexpr double kScale = 0.25;

struct Reference {
  double loss = 0;
  std::vector<double> gradient;
};

Reference reference(const std::vector<double>& x, const std::vector<std::int32_t>& targets) {
  const std::size_t v = x.size() / targets.size();
  Reference out{0, std::vector<double>(x.size())};
  for (std::size_t t = 0; t < targets.size(); ++t) {
    if (targets[t] < 0) continue;
    double sum = 0;
    for (std::size_t i = 0; i < v; ++i) sum += std::exp(x[t * v + i]);
    out.loss += std::log(sum) - x[t * v + static_cast<std::size_t>(targets[t])];
    for (std::size_t i = 0; i < v; ++i) {
      const double hit = i == static_cast<std::size_t>(targets[t]) ? 1 : 0;
      out.gradient[t * v + i] = kScale * (std::exp(x[t * v + i]) / sum - hit);
    }
  }
  return out;
}

std::vector<std::int32_t> some_targets(std::int32_t tokens, std::int32_t vocabulary) {
  std::vector<std::int32_t> targets;
  for (std::int32_t t = 0; t < tokens; ++t) targets.push_back(t % 4 == 2 ? -1 : t * 7 % vocabulary);
  return targets;
}

TEST(CrossEntropy, MatchesTheReference) {
  Host host;
  for (DType dtype : kFloats) {
    for (std::int32_t v : {1, 3, 17, 33, 257}) {
      const std::vector<std::int32_t> targets = some_targets(9, v);
      const Tensor logits = host.random({9, v}, dtype, 1), ids = host.ints(targets),
                   kept = host.clone(logits);
      const Tensor loss = host.tensor({1}, DType::kF64, {10}), only = host.tensor({1}, DType::kF64, {0});
      const Reference expected = reference(values(logits), targets);

      kernels::cross_entropy_loss(host.stream, logits, ids, only);
      EXPECT_TRUE(same_bits(logits, kept));
      kernels::cross_entropy_in_place(host.stream, logits, ids, kScale, loss);

      expect_close(only, {expected.loss}, kRoundings * roundoff(dtype));
      expect_close(loss, {10 + expected.loss}, kRoundings * roundoff(dtype));
      expect_close(logits, expected.gradient, kRoundings * roundoff(dtype));
    }
  }
}

TEST(CrossEntropy, GradientIsTheSlopeOfTheLoss) {
  Host host;
  const std::vector<std::int32_t> targets{4, 0, -1};
  const Tensor logits = host.random({3, 5}, DType::kF64, 1), loss = host.tensor({1}, DType::kF64, {0});
  const auto scaled_loss = [&](const std::vector<double>& x) {
    const Tensor sum = host.tensor({1}, DType::kF64, {0});
    kernels::cross_entropy_loss(host.stream, host.tensor({3, 5}, DType::kF64, x), host.ints(targets), sum);
    return kScale * values(sum)[0];
  };
  std::vector<double> gradient;
  for (std::size_t i = 0; i < 15; ++i) gradient.push_back(slope(scaled_loss, values(logits), i));

  kernels::cross_entropy_in_place(host.stream, logits, host.ints(targets), kScale, loss);

  expect_close(logits, gradient, kSlopeTolerance);
}

TEST(CrossEntropy, LargeLogitsDoNotOverflow) {
  Host host;
  const Tensor logits = host.tensor({2, 3}, DType::kF32, {1e30, 0, -1e30, -5000, -5001, -kInf});
  const Tensor loss = host.tensor({1}, DType::kF64, {0});

  kernels::cross_entropy_in_place(host.stream, logits, host.ints({0, 1}), 1, loss);

  const double second = 1 + std::log1p(std::exp(-1.0));
  expect_close(loss, {second}, kRoundings * roundoff(DType::kF32));
  const double p = 1 / (1 + std::exp(-1.0));
  expect_close(logits, {0, 0, 0, p, -p, 0}, kRoundings * roundoff(DType::kF32));
}

TEST(CrossEntropy, ANanOrAnInfiniteLogitGivesANanLoss) {
  Host host;
  for (DType dtype : kFloats) {
    for (double bad : {kNan, kInf}) {
      for (std::int64_t place : {0, 15, 16, 32}) {
        const Tensor logits = host.random({2, 33}, dtype, 1), loss = host.tensor({1}, DType::kF64, {0});
        std::vector<double> x = values(logits);
        x[static_cast<std::size_t>(33 + place)] = bad;
        const Tensor spoilt = host.tensor({2, 33}, dtype, x), only = host.tensor({1}, DType::kF64, {0});

        kernels::cross_entropy_loss(host.stream, spoilt, host.ints({3, 4}), only);
        kernels::cross_entropy_in_place(host.stream, spoilt, host.ints({3, 4}), 1, loss);

        EXPECT_TRUE(std::isnan(values(loss)[0]) && std::isnan(values(only)[0]));
        EXPECT_TRUE(std::isnan(values(spoilt)[33 + 7]));
        EXPECT_TRUE(std::isfinite(values(spoilt)[7]));
      }
    }
  }
}

TEST(CrossEntropy, RefusesTargetsOutsideTheVocabulary) {
  Host host;
  const Tensor logits = host.random({1, 3}, DType::kF32, 1), loss = host.tensor({1}, DType::kF64, {0});
  for (std::int32_t target : {-2, 3})
    EXPECT_THROW(kernels::cross_entropy_in_place(host.stream, logits, host.ints({target}), 1, loss), Error);
}

TEST(CrossEntropy, BitsDoNotDependOnPlaceAddressOrThreads) {
  Host host;
  for (DType dtype : kFloats) {
    const std::vector<std::int32_t> targets = some_targets(301, 129);
    const Tensor logits = host.random({301, 129}, dtype, 1), ids = host.ints(targets);
    const Tensor whole = host.clone(logits), shifted = host.shifted(logits),
                 row = host.clone(logits.rows(7, 8));
    const Tensor loss = host.tensor({1}, DType::kF64, {0}), other = host.tensor({1}, DType::kF64, {0});
    const Tensor unused = host.tensor({1}, DType::kF64, {0});

    kernels::cross_entropy_in_place(host.stream, whole, ids, kScale, loss);
    kernels::cross_entropy_in_place(host.stream, shifted, ids, kScale, other);
    kernels::cross_entropy_in_place(host.stream, row, host.ints({targets[7]}), kScale, unused);

    EXPECT_TRUE(same_bits(whole, shifted) && same_bits(loss, other) && same_bits(row, whole.rows(7, 8)));
    expect_threads_do_not_matter([&] {
      const Tensor gradient = host.clone(logits), sum = host.tensor({1}, DType::kF64, {0});
      kernels::cross_entropy_in_place(host.stream, gradient, ids, kScale, sum);
      return std::vector<Tensor>{gradient, sum};
    });
  }
}

}  // namespace
}  // namespace dew::test
