// The loss over a vocabulary in parts against plain loops over the whole one.
#include <limits>

#include "host.h"
#include "kernels/cross_entropy.h"

namespace dew::test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
// A loss of some units from f32 logits: exp is good to 1.1 ulp and errors average out in the f64 sum.
constexpr double kRoundings = 16;
constexpr double kScale = 0.25;

/// Columns [cuts[i], cuts[i + 1]) are part i.
using Cuts = std::vector<std::int64_t>;

struct Joined {
  std::vector<double> gradient;  ///< [T, V]
  double loss = 0;
};

Joined run_in_parts(Host& host, DType dtype, const std::vector<double>& x,
                    const std::vector<std::int32_t>& targets, const Cuts& cuts) {
  const auto tokens = static_cast<std::int64_t>(targets.size()), vocab = cuts.back();
  const auto parts = static_cast<std::int64_t>(cuts.size()) - 1;
  const Tensor ids = host.ints(targets),
               numbers = host.empty({parts, tokens, kernels::kPartNumbers}, DType::kF64);
  std::vector<Tensor> logits;
  for (std::int64_t p = 0; p < parts; ++p) {
    const std::int64_t begin = cuts[static_cast<std::size_t>(p)], end = cuts[static_cast<std::size_t>(p) + 1];
    std::vector<double> columns;
    for (std::int64_t t = 0; t < tokens; ++t)
      columns.insert(columns.end(), x.begin() + t * vocab + begin, x.begin() + t * vocab + end);
    logits.push_back(host.tensor({tokens, end - begin}, dtype, columns));
    kernels::cross_entropy_part(host.stream, logits.back(), ids, {begin, vocab}, numbers.rows(p, p + 1));
  }
  Joined joined{std::vector<double>(x.size()), 0};
  const Tensor loss = host.tensor({1}, DType::kF64, {10});
  kernels::cross_entropy_joined_loss(host.stream, numbers, ids, loss);
  joined.loss = values(loss)[0] - 10;
  for (std::int64_t p = 0; p < parts; ++p) {
    const Tensor& part = logits[static_cast<std::size_t>(p)];
    const std::int64_t begin = cuts[static_cast<std::size_t>(p)], columns = part.dim(1);
    kernels::cross_entropy_joined_gradient(host.stream, numbers, p, ids, {begin, vocab}, kScale, part);
    const std::vector<double> own = values(part);
    for (std::int64_t t = 0; t < tokens; ++t)
      std::copy_n(own.begin() + t * columns, columns, joined.gradient.begin() + t * vocab + begin);
  }
  return joined;
}

Joined reference(const std::vector<double>& x, const std::vector<std::int32_t>& targets) {
  const std::size_t v = x.size() / targets.size();
  Joined out{std::vector<double>(x.size()), 0};
  for (std::size_t t = 0; t < targets.size(); ++t) {
    if (targets[t] < 0) continue;
    double sum = 0, largest = -kInf;
    for (std::size_t i = 0; i < v; ++i) largest = std::max(largest, x[t * v + i]);
    for (std::size_t i = 0; i < v; ++i) sum += std::exp(x[t * v + i] - largest);
    out.loss += std::log(sum) + largest - x[t * v + static_cast<std::size_t>(targets[t])];
    for (std::size_t i = 0; i < v; ++i) {
      const double hit = i == static_cast<std::size_t>(targets[t]) ? 1 : 0;
      out.gradient[t * v + i] = kScale * (std::exp(x[t * v + i] - largest) / sum - hit);
    }
  }
  return out;
}

void expect_reference(const Joined& actual, const Joined& expected, DType dtype) {
  const double bound = kRoundings * roundoff(dtype);
  EXPECT_NEAR(actual.loss, expected.loss, bound * std::max(1.0, std::abs(expected.loss)));
  ASSERT_EQ(actual.gradient.size(), expected.gradient.size());
  for (std::size_t i = 0; i < expected.gradient.size(); ++i)
    ASSERT_NEAR(actual.gradient[i], expected.gradient[i], bound) << "element " << i;
}

std::vector<std::int32_t> some_targets(std::int32_t tokens, std::int64_t vocabulary) {
  std::vector<std::int32_t> targets;
  for (std::int32_t t = 0; t < tokens; ++t)
    targets.push_back(t % 4 == 2 ? -1 : static_cast<std::int32_t>(t * 7 % vocabulary));
  return targets;
}

const Cuts kAllCuts[] = {{0, 1}, {0, 3, 3, 5}, {0, 9, 18, 33}, {0, 100, 257, 257}, {0, 0, 17}};

TEST(CrossEntropyParts, MatchTheWhole) {
  Host host;
  for (DType dtype : kFloats) {
    for (const Cuts& cuts : kAllCuts) {
      const std::vector<double> x = values(host.random({11, cuts.back()}, dtype, 1));
      const std::vector<std::int32_t> targets = some_targets(11, cuts.back());

      expect_reference(run_in_parts(host, dtype, x, targets, cuts), reference(x, targets), dtype);
    }
  }
}

TEST(CrossEntropyParts, DoNotOverflowWhereTheLargestIsElsewhere) {
  Host host;
  const std::vector<double> x{1000, 999, -1000, -1001, -5000, -5001, 3000, 2999, -kInf, -kInf, 1, 2};
  for (DType dtype : kFloats)
    for (const Cuts& cuts : {Cuts{0, 2, 4}, {0, 1, 2, 3, 4}, {0, 3, 4}})
      expect_reference(run_in_parts(host, dtype, x, {1, 3, 3}, cuts), reference(x, {1, 3, 3}), dtype);
}

TEST(CrossEntropyParts, ANanOrAnInfiniteLogitOfAnyPartGivesANanLoss) {
  Host host;
  for (DType dtype : kFloats) {
    for (double bad : {kNan, kInf}) {
      for (std::size_t place : {0, 3, 4, 7}) {
        std::vector<double> x = values(host.random({2, 8}, dtype, 1));
        x[8 + place] = bad;
        const Joined joined = run_in_parts(host, dtype, x, {3, 4}, {0, 4, 5, 8});
        EXPECT_TRUE(std::isnan(joined.loss)) << place;
        EXPECT_TRUE(std::isnan(joined.gradient[8 + 6])) << place;
        EXPECT_TRUE(std::isfinite(joined.gradient[6]));
      }
      const std::vector<double> all(8, bad);
      EXPECT_TRUE(std::isnan(run_in_parts(host, dtype, all, {3}, {0, 4, 8}).loss));
    }
  }
}

TEST(CrossEntropyParts, RefuseTargetsOutsideTheVocabularyOnly) {
  Host host;
  const Tensor logits = host.random({1, 3}, DType::kF32, 1), numbers = host.empty({1, 1, 3}, DType::kF64);
  for (std::int32_t target : {-2, 8})
    EXPECT_THROW(kernels::cross_entropy_part(host.stream, logits, host.ints({target}), {2, 8}, numbers),
                 Error);
  for (std::int32_t target : {-1, 0, 7})
    EXPECT_NO_THROW(kernels::cross_entropy_part(host.stream, logits, host.ints({target}), {2, 8}, numbers));
  EXPECT_THROW(kernels::cross_entropy_part(host.stream, logits, host.ints({0}), {6, 8}, numbers), Error);
}

TEST(CrossEntropyParts, BitsDoNotDependOnThreads) {
  Host host;
  const std::vector<std::int32_t> targets = some_targets(301, 129);
  const std::vector<double> x = values(host.random({301, 129}, DType::kF32, 1));
  expect_threads_do_not_matter([&] {
    const Joined joined = run_in_parts(host, DType::kF32, x, targets, {0, 60, 129});
    return std::vector<Tensor>{host.tensor({301, 129}, DType::kF64, joined.gradient),
                               host.tensor({1}, DType::kF64, {joined.loss})};
  });
}

}  // namespace
}  // namespace dew::test
