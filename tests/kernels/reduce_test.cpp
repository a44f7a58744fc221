#include "kernels/reduce.h"

#include <limits>

#include "host.h"

namespace dew::test {
namespace {

// f64 sums of n squares in at least eight lanes: n / 8 roundings of a share of the sum, relative to it.
double sum_tolerance(std::int64_t n) {
  return (static_cast<double>(n) / 8 + 8) * roundoff(DType::kF64);
}

TEST(SumOfSquares, MatchesTheReference) {
  Host host;
  for (DType dtype : kFloats) {
    for (std::int64_t n : {0, 1, 3, 17, 33, 257, 40001}) {
      const Tensor x = host.random({n}, dtype, 1);
      double expected = 0;
      for (double v : values(x)) expected += v * v;
      EXPECT_NEAR(kernels::sum_of_squares(host.stream, x), expected,
                  sum_tolerance(n) * std::max(1.0, expected));
    }
  }
}

TEST(SumOfSquares, SquaresOfF32DoNotOverflowOrVanish) {
  Host host;
  const Tensor x = host.tensor({2}, DType::kF32, {1e30, 0}), tiny = host.tensor({1}, DType::kF32, {0x1p-100});
  EXPECT_NEAR(kernels::sum_of_squares(host.stream, x), 1e60, 1e54);
  EXPECT_EQ(kernels::sum_of_squares(host.stream, tiny), 0x1p-200);
}

TEST(SumOfSquares, NanAndInfinityComeThrough) {
  Host host;
  for (DType dtype : kFloats) {
    std::vector<double> x = draw(1, 33);
    x[32] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_TRUE(std::isnan(kernels::sum_of_squares(host.stream, host.tensor({33}, dtype, x))));
    x[32] = -std::numeric_limits<double>::infinity();
    EXPECT_EQ(kernels::sum_of_squares(host.stream, host.tensor({33}, dtype, x)),
              std::numeric_limits<double>::infinity());
  }
}

TEST(SumOfSquares, BitsDoNotDependOnAddressOrThreads) {
  Host host;
  for (DType dtype : kFloats) {
    const Tensor x = host.random({100003}, dtype, 1);
    EXPECT_EQ(kernels::sum_of_squares(host.stream, x), kernels::sum_of_squares(host.stream, host.shifted(x)));
    expect_threads_do_not_matter([&] {
      return std::vector<Tensor>{host.tensor({1}, DType::kF64, {kernels::sum_of_squares(host.stream, x)})};
    });
  }
}

TEST(SumOfSquares, IsZeroOnAMetaDevice) {
  Allocator nothing{Device{Device::Kind::kMeta, 0}};
  Stream meta{nothing};
  EXPECT_EQ(kernels::sum_of_squares(meta, Tensor::empty({33}, DType::kF32, meta, Owner::kBuffers)), 0);
  EXPECT_EQ(meta.profile()[KernelKind::kReduce].flops, 66);
}

TEST(SumInOrder, AddsInTheOrderGiven) {
  Host host;
  for (DType dtype : kFloats) {
    for (std::int64_t n : kSizes) {
      const std::vector<Tensor> terms{host.random({n}, dtype, 1), host.random({n}, dtype, 2),
                                      host.random({n}, dtype, 3)};
      for (bool accumulate : {false, true}) {
        const Tensor y = host.random({n}, dtype, 4);
        std::vector<double> sum = accumulate ? values(y) : values(terms[0]);
        for (std::size_t k = accumulate ? 0 : 1; k < 3; ++k)
          for (std::size_t i = 0; i < sum.size(); ++i) {
            sum[i] += values(terms[k])[i];
            if (dtype == DType::kF32) sum[i] = static_cast<double>(static_cast<float>(sum[i]));
          }

        kernels::sum_in_order(host.stream, terms, y, accumulate);

        EXPECT_EQ(values(y), sum);
      }
    }
  }
}

TEST(SumInOrder, SumsBf16InF32AndRoundsOnce) {
  Host host;
  const std::vector<Tensor> terms{host.random({257}, DType::kBf16, 1), host.random({257}, DType::kBf16, 2),
                                  host.random({257}, DType::kBf16, 3)};
  const Tensor y = host.random({257}, DType::kBf16, 4);
  const std::vector<double> before = values(y);
  kernels::sum_in_order(host.stream, terms, y, true);
  const std::vector<double> sums = values(y);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    float sum = static_cast<float>(before[i]);
    for (const Tensor& term : terms) sum += static_cast<float>(values(term)[i]);
    EXPECT_EQ(sums[i], static_cast<double>(bf16(sum)));
  }
}

TEST(SumInOrder, WritesOntoItsFirstTerm) {
  Host host;
  const Tensor a = host.tensor({3}, DType::kF32, {1, 2, 3}), b = host.tensor({3}, DType::kF32, {10, 20, 30});
  kernels::sum_in_order(host.stream, std::vector<Tensor>{a, b}, a, false);
  EXPECT_EQ(values(a), (std::vector<double>{11, 22, 33}));
}

TEST(SumInOrder, WrapsWords) {
  Host host;
  const Tensor a = host.empty({2}, DType::kI64), b = host.empty({2}, DType::kI64),
               y = host.empty({2}, DType::kI64);
  a.data<std::int64_t>()[0] = std::numeric_limits<std::int64_t>::max();
  b.data<std::int64_t>()[0] = 1;
  a.data<std::int64_t>()[1] = -5;
  b.data<std::int64_t>()[1] = 3;

  kernels::sum_in_order(host.stream, std::vector<Tensor>{a, b}, y, false);
  EXPECT_EQ(y.data<std::int64_t>()[0], std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(y.data<std::int64_t>()[1], -2);
  kernels::sum_in_order(host.stream, std::vector<Tensor>{b}, y, true);
  EXPECT_EQ(y.data<std::int64_t>()[1], 1);
}

TEST(SumInOrder, RefusesTermsThatDiffer) {
  Host host;
  const Tensor y = host.random({3}, DType::kF32, 1);
  EXPECT_THROW(
      kernels::sum_in_order(host.stream, std::vector<Tensor>{host.random({3}, DType::kF64, 1)}, y, false),
      Error);
  EXPECT_THROW(
      kernels::sum_in_order(host.stream, std::vector<Tensor>{host.random({4}, DType::kF32, 1)}, y, false),
      Error);
  EXPECT_THROW(kernels::sum_in_order(host.stream, {}, y, false), Error);
}

}  // namespace
}  // namespace dew::test
