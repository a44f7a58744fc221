#include "kernels/norm.h"

#include <limits>

#include "host.h"

namespace dew::test {
namespace {

constexpr double kEps = 1e-5;
// The root takes half of the error of a sum of D squares; lanes add D / 16 terms each: below 32 units at D =
// 1030.
constexpr double kForwardRoundings = 32;
// Results of some units are differences of such terms, or sums over up to 64 rows, in what they are computed
// in.
constexpr double kBackwardRoundings = 64;

struct Reference {
  std::vector<double> y, dx, d_weight;
};

// x, dy [rows, d].
Reference reference(const std::vector<double>& x, const std::vector<double>& w,
                    const std::vector<double>& dy) {
  const std::size_t d = w.size(), rows = x.size() / d;
  Reference out{std::vector<double>(x.size()), std::vector<double>(x.size()), std::vector<double>(d)};
  for (std::size_t t = 0; t < rows; ++t) {
    double squares = 0, dot = 0;
    for (std::size_t j = 0; j < d; ++j) {
      squares += x[t * d + j] * x[t * d + j];
      dot += dy[t * d + j] * w[j] * x[t * d + j];
    }
    const double r = 1 / std::sqrt(squares / static_cast<double>(d) + kEps);
    for (std::size_t j = 0; j < d; ++j) {
      const std::size_t i = t * d + j;
      out.y[i] = x[i] * r * w[j];
      out.dx[i] = r * (dy[i] * w[j] - x[i] * r * r * dot / static_cast<double>(d));
      out.d_weight[j] += dy[i] * x[i] * r;
    }
  }
  return out;
}

struct Case {
  Tensor x, w, dy, y, inverse, dx, d_weight;
};

Case make_case(Host& host, std::int64_t rows, std::int64_t d, DType dtype, DType reduce) {
  Case c{.x = host.random({rows, d}, dtype, 1),
         .w = host.random({d}, dtype, 2),
         .dy = host.random({rows, d}, dtype, 3),
         .y = host.empty({rows, d}, dtype),
         .inverse = host.empty({rows}, real_of(dtype)),
         .dx = host.random({rows, d}, dtype, 4),
         .d_weight = host.random({d}, reduce, 5)};
  kernels::rms_norm_forward(host.stream, c.x, c.w, kEps, c.y, c.inverse);
  return c;
}

TEST(RmsNorm, MatchesTheReference) {
  Host host;
  for (DType dtype : kStored) {
    for (std::int64_t d : {1, 3, 17, 33, 257, 1030}) {
      for (std::int64_t rows : {0, 1, 5, 67}) {
        const Case c = make_case(host, rows, d, dtype, real_of(dtype));
        const Reference expected = reference(values(c.x), values(c.w), values(c.dy));

        kernels::rms_norm_backward(host.stream, c.x, c.w, c.inverse, c.dy, {c.dx, false},
                                   {c.d_weight, false});

        expect_close(c.y, expected.y, kForwardRoundings * roundoff(dtype));
        // With one element a row the gradient is a small difference of terms up to 4 / sqrt(eps).
        const double size = d == 1 ? 4 / std::sqrt(kEps) : 1;
        expect_close(c.dx, expected.dx, kBackwardRoundings * size * roundoff(dtype));
        // Sums of as many terms of both signs as there are rows.
        const double terms = 1 + static_cast<double>(rows) / 16;
        expect_close(c.d_weight, expected.d_weight, kBackwardRoundings * terms * roundoff(dtype));
      }
    }
  }
}

TEST(RmsNorm, AccumulatesAndKeepsAWiderWeightGradient) {
  Host host;
  const Case c = make_case(host, 129, 33, DType::kF32, DType::kF64);
  Reference expected = reference(values(c.x), values(c.w), values(c.dy));
  const std::vector<double> old_dx = values(c.dx), old_weight = values(c.d_weight);
  for (std::size_t i = 0; i < old_dx.size(); ++i) expected.dx[i] += old_dx[i];
  for (std::size_t j = 0; j < old_weight.size(); ++j) expected.d_weight[j] += old_weight[j];

  kernels::rms_norm_backward(host.stream, c.x, c.w, c.inverse, c.dy, {c.dx, true}, {c.d_weight, true});

  expect_close(c.dx, expected.dx, kBackwardRoundings * roundoff(DType::kF32));
  expect_close(c.d_weight, expected.d_weight, kBackwardRoundings * roundoff(DType::kF32));
  EXPECT_THROW(kernels::rms_norm_backward(host.stream, c.x.reshape({129 * 33}), c.w, c.inverse, c.dy,
                                          {c.dx, true}, {c.d_weight, true}),
               Error);
}

TEST(RmsNorm, BackwardIsTheSlopeOfForward) {
  Host host;
  const std::int64_t rows = 3, d = 5;
  const Case c = make_case(host, rows, d, DType::kF64, DType::kF64);
  const auto loss = [&](const std::vector<double>& x, const std::vector<double>& w) {
    const Tensor y = host.empty({rows, d}, DType::kF64), inverse = host.empty({rows}, DType::kF64);
    kernels::rms_norm_forward(host.stream, host.tensor({rows, d}, DType::kF64, x),
                              host.tensor({d}, DType::kF64, w), kEps, y, inverse);
    double sum = 0;
    for (std::int64_t i = 0; i < rows * d; ++i) sum += y.data<double>()[i] * c.dy.data<double>()[i];
    return sum;
  };
  std::vector<double> dx, d_weight;
  for (std::size_t i = 0; i < 15; ++i)
    dx.push_back(slope([&](const auto& x) { return loss(x, values(c.w)); }, values(c.x), i));
  for (std::size_t j = 0; j < 5; ++j)
    d_weight.push_back(slope([&](const auto& w) { return loss(values(c.x), w); }, values(c.w), j));

  kernels::rms_norm_backward(host.stream, c.x, c.w, c.inverse, c.dy, {c.dx, false}, {c.d_weight, false});

  expect_close(c.dx, dx, kSlopeTolerance);
  expect_close(c.d_weight, d_weight, kSlopeTolerance);
}

TEST(RmsNorm, ANanStaysInItsRow) {
  Host host;
  for (double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const Tensor x = host.random({3, 33}, DType::kF32, 1), w = host.random({33}, DType::kF32, 2);
    x.data<float>()[33 + 32] = static_cast<float>(bad);
    const Tensor y = host.empty({3, 33}, DType::kF32), inverse = host.empty({3}, DType::kF32);
    const Tensor d_weight = host.empty({33}, DType::kF32), dx = host.empty({3, 33}, DType::kF32);

    kernels::rms_norm_forward(host.stream, x, w, kEps, y, inverse);
    kernels::rms_norm_backward(host.stream, x, w, inverse, x, {dx, false}, {d_weight, false});

    EXPECT_TRUE(std::isnan(values(y)[33 + 32]));
    EXPECT_TRUE(std::isnan(values(dx)[33 + 32]));
    EXPECT_TRUE(std::isnan(values(d_weight)[32]));
    for (std::size_t j = 0; j < 33; ++j)
      EXPECT_TRUE(std::isfinite(values(y)[j]) && std::isfinite(values(y)[66 + j]));
  }
}

TEST(RmsNorm, BitsDoNotDependOnThePlaceOrTheAddress) {
  Host host;
  for (DType dtype : kStored) {
    const Case c = make_case(host, 5, 33, dtype, real_of(dtype));
    kernels::rms_norm_backward(host.stream, c.x, c.w, c.inverse, c.dy, {c.dx, false}, {c.d_weight, false});
    const Tensor x = host.shifted(c.x), w = host.shifted(c.w), dy = host.shifted(c.dy);
    const Tensor y = host.shifted(c.y), inverse = host.shifted(c.inverse), dx = host.shifted(c.dx);
    const Tensor d_weight = host.shifted(c.d_weight);
    std::memset(y.raw(), 0, y.bytes());
    std::memset(dx.raw(), 0, dx.bytes());

    kernels::rms_norm_forward(host.stream, x, w, kEps, y, inverse);
    kernels::rms_norm_backward(host.stream, x, w, inverse, dy, {dx, false}, {d_weight, false});
    EXPECT_TRUE(same_bits(y, c.y) && same_bits(dx, c.dx) && same_bits(d_weight, c.d_weight));

    kernels::rms_norm_forward(host.stream, c.x.rows(2, 3), c.w, kEps, y.rows(0, 1), inverse.rows(0, 1));
    EXPECT_TRUE(same_bits(y.rows(0, 1), c.y.rows(2, 3)));
  }
}

TEST(RmsNorm, ThreadsDoNotChangeBits) {
  Host host;
  for (DType dtype : kStored) {
    const std::int64_t rows = 1031, d = 65;
    const Case c = make_case(host, rows, d, dtype, real_of(dtype));
    expect_threads_do_not_matter([&] {
      const Tensor y = host.empty({rows, d}, dtype), inverse = host.empty({rows}, real_of(dtype));
      const Tensor dx = host.empty({rows, d}, dtype), d_weight = host.empty({d}, real_of(dtype));
      kernels::rms_norm_forward(host.stream, c.x, c.w, kEps, y, inverse);
      kernels::rms_norm_backward(host.stream, c.x, c.w, inverse, c.dy, {dx, false}, {d_weight, false});
      return std::vector<Tensor>{y, inverse, dx, d_weight};
    });
  }
}

TEST(RmsNorm, MetaStreamsCountTheSameScratch) {
  Host host;
  Allocator nothing{Device{Device::Kind::kMeta, 0}};
  Stream meta{nothing};
  for (Stream* stream : {&host.stream, &meta}) {
    const auto make = [&](const Shape& shape) {
      return Tensor::zeros(shape, DType::kF32, *stream, Owner::kBuffers);
    };
    const Tensor x = make({130, 33}), dx = make({130, 33}), w = make({33}), d_weight = make({33}),
                 r = make({130});
    kernels::rms_norm_backward(*stream, x, w, r, x, {dx, false}, {d_weight, false});
  }

  EXPECT_EQ(host.allocator.use().total_peak, nothing.use().total_peak);
  EXPECT_EQ(host.stream.profile()[KernelKind::kNorm].flops, meta.profile()[KernelKind::kNorm].flops);
}

}  // namespace
}  // namespace dew::test
