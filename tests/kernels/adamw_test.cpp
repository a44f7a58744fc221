#include "kernels/adamw.h"

#include <limits>

#include "host.h"

namespace dew::test {
namespace {

// A dozen roundings a step, of numbers below 4, carried over three steps.
constexpr double kRoundings = 48;

struct State {
  Tensor gradient, w, m, v;
};

State make_state(Host& host, std::int64_t n, DType dtype) {
  State s{host.random({n}, dtype, 1), host.random({n}, dtype, 2), host.random({n}, dtype, 3),
          host.random({n}, dtype, 4)};
  visit_float(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < n; ++i) s.v.data<T>()[i] = std::abs(s.v.data<T>()[i]);
  });
  return s;
}

kernels::AdamWStep at(std::int64_t step) {
  return {.lr = 0.01,
          .beta1 = 0.9,
          .beta2 = 0.95,
          .eps = 1e-8,
          .weight_decay = 0.1,
          .gradient_scale = 0.5,
          .step = step};
}

TEST(AdamW, MatchesTheReferenceOverSteps) {
  Host host;
  for (DType dtype : kFloats) {
    for (std::int64_t n : kSizes) {
      const State s = make_state(host, n, dtype);
      std::vector<double> w = values(s.w), m = values(s.m), v = values(s.v);
      for (std::int64_t step = 1; step <= 3; ++step) {
        kernels::adamw(host.stream, at(step), s.gradient, s.w, s.m, s.v);
        for (std::size_t i = 0; i < w.size(); ++i) {
          const double g = 0.5 * values(s.gradient)[i], count = static_cast<double>(step);
          w[i] *= 1 - 0.01 * 0.1;
          m[i] = 0.9 * m[i] + 0.1 * g;
          v[i] = 0.95 * v[i] + 0.05 * g * g;
          const double mean = m[i] / (1 - std::pow(0.9, count)), square = v[i] / (1 - std::pow(0.95, count));
          w[i] -= 0.01 * mean / (std::sqrt(square) + 1e-8);
        }
      }
      expect_close(s.w, w, kRoundings * roundoff(dtype));
      expect_close(s.m, m, kRoundings * roundoff(dtype));
      expect_close(s.v, v, kRoundings * roundoff(dtype));
    }
  }
}

TEST(AdamW, FirstStepFromZeroMovesByTheRate) {
  Host host;
  const Tensor g = host.tensor({3}, DType::kF64, {1e-3, -5, 0}), w = host.tensor({3}, DType::kF64, {1, 1, 1});
  const Tensor m = host.tensor({3}, DType::kF64, {0, 0, 0}), v = host.tensor({3}, DType::kF64, {0, 0, 0});
  kernels::adamw(host.stream, {.lr = 0.01, .eps = 1e-12, .step = 1}, g, w, m, v);
  // eps is 1e-9 of the smallest gradient, hence 1e-11 of the weight; twice that.
  expect_close(w, {0.99, 1.01, 1}, 2e-11);
}

TEST(AdamW, NanComesThroughAlone) {
  Host host;
  const State s = make_state(host, 33, DType::kF32);
  s.gradient.data<float>()[32] = std::numeric_limits<float>::quiet_NaN();
  kernels::adamw(host.stream, at(1), s.gradient, s.w, s.m, s.v);
  for (std::size_t i = 0; i < 33; ++i) EXPECT_EQ(std::isnan(values(s.w)[i]), i == 32);
}

TEST(AdamW, BitsDoNotDependOnPlaceOrThreads) {
  Host host;
  for (DType dtype : kFloats) {
    const std::int64_t n = 40001;
    const State start = make_state(host, n, dtype);
    const Tensor w = host.clone(start.w), m = host.clone(start.m), v = host.clone(start.v);
    kernels::adamw(host.stream, at(2), start.gradient, w, m, v);
    for (std::int64_t begin : {1, 15, 39990}) {
      const Tensor part = host.clone(start.w.range(begin, n)), part_m = host.clone(start.m.range(begin, n));
      const Tensor part_v = host.clone(start.v.range(begin, n));
      kernels::adamw(host.stream, at(2), start.gradient.range(begin, n), part, part_m, part_v);
      EXPECT_TRUE(same_bits(part, w.range(begin, n)) && same_bits(part_v, v.range(begin, n)));
    }
    expect_threads_do_not_matter([&] {
      const Tensor w2 = host.clone(start.w), m2 = host.clone(start.m), v2 = host.clone(start.v);
      kernels::adamw(host.stream, at(2), start.gradient, w2, m2, v2);
      return std::vector<Tensor>{w2, m2, v2};
    });
  }
}

TEST(AdamW, RefusesStepZero) {
  Host host;
  const State s = make_state(host, 1, DType::kF32);
  EXPECT_THROW(kernels::adamw(host.stream, at(0), s.gradient, s.w, s.m, s.v), Error);
}

}  // namespace
}  // namespace dew::test
