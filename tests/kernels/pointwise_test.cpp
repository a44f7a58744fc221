#include "kernels/pointwise.h"

#include <limits>

#include "host.h"

namespace dew::test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
// A few roundings of terms below 10, exp and the quotient included: at most 16 units of roundoff.
constexpr double kRoundings = 16;
constexpr std::int64_t kManyElements = 40001;  // above the size at which threads share a loop

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
double swiglu(double g, double u) {
  return g * sigmoid(g) * u;
}

TEST(Pointwise, AddScaleAndLerpMatchTheirFormulas) {
  Host host;
  for (DType dtype : kFloats) {
    for (std::int64_t n : kSizes) {
      const Tensor a = host.random({n}, dtype, 1), b = host.random({n}, dtype, 2), y = host.empty({n}, dtype);
      const std::vector<double> va = values(a), vb = values(b);
      std::vector<double> sum, scaled, mixed;
      for (std::size_t i = 0; i < va.size(); ++i) {
        sum.push_back(va[i] + vb[i]);
        scaled.push_back(va[i] * 0.3);
        mixed.push_back(0.9 * va[i] + 0.1 * vb[i]);
      }

      kernels::add(host.stream, a, b, y);
      expect_close(y, sum, kRoundings * roundoff(dtype));
      const Tensor average = host.clone(a), x = host.clone(a), in_place = host.clone(a);
      kernels::scale(host.stream, x, 0.3);
      expect_close(x, scaled, kRoundings * roundoff(dtype));
      kernels::lerp(host.stream, average, b, 0.9);
      expect_close(average, mixed, kRoundings * roundoff(dtype));
      kernels::add(host.stream, in_place, b, in_place);
      EXPECT_TRUE(same_bits(in_place, y));
    }
  }
}

TEST(Pointwise, AddRoundsOnceInBf16) {
  Host host;
  for (std::int64_t n : kSizes) {
    const Tensor a = host.random({n}, DType::kBf16, 1), b = host.random({n}, DType::kBf16, 2),
                 y = host.empty({n}, DType::kBf16);
    kernels::add(host.stream, a, b, y);
    const std::vector<double> va = values(a), vb = values(b), sum = values(y);
    for (std::size_t i = 0; i < sum.size(); ++i)
      EXPECT_EQ(sum[i], static_cast<double>(bf16(static_cast<float>(va[i]) + static_cast<float>(vb[i]))));
  }
}

TEST(Pointwise, CastsBetweenFormats) {
  Host host;
  const double inf = std::numeric_limits<double>::infinity();
  // 1 + 2^-8 lies between two bf16 numbers and goes to the even one; the next goes up. 1e-40 is 0 in bf16.
  const std::vector<double> edges{
      0, 1 + 0x1p-8, 1 + 0x1p-7 + 0x1p-8, 1 + 0x1p-8 + 0x1p-16, -3.14159274, inf, -inf, 3.3e38, 1e-40};
  for (std::int64_t n : {9, 40001})
    for (DType from : kStored)
      for (DType to : kStored) {
        const Tensor x = host.random({n}, from, 1), y = host.empty({n}, to);
        const Tensor head = x.range(0, 9), start = host.tensor({9}, from, edges);
        std::memcpy(head.raw(), start.raw(), start.bytes());

        kernels::cast(host.stream, x, y);

        const std::vector<double> in = values(x);
        const Tensor expected = host.tensor({n}, to, in);
        EXPECT_TRUE(same_bits(y, expected)) << name_of(from) << " to " << name_of(to);
      }
  const Tensor nan = host.tensor({1}, DType::kF32, {std::nan("")}), narrow = host.empty({1}, DType::kBf16);
  kernels::cast(host.stream, nan, narrow);
  EXPECT_TRUE(std::isnan(values(narrow)[0]));
}

TEST(Pointwise, LerpKeepsAnAverageThatEqualsItsValue) {
  Host host;
  const Tensor value = host.random({33}, DType::kF32, 1), average = host.clone(value);

  kernels::lerp(host.stream, average, value, 0.999);

  EXPECT_TRUE(same_bits(average, value));
}

TEST(Pointwise, SwigluMatchesItsFormulas) {
  Host host;
  for (DType dtype : kStored) {
    for (std::int64_t n : kSizes) {
      const Tensor gate = host.random({n}, dtype, 1), up = host.random({n}, dtype, 2),
                   dy = host.random({n}, dtype, 3);
      const Tensor y = host.empty({n}, dtype), before = host.random({n}, dtype, 4);
      const Tensor d_gate = host.empty({n}, dtype), d_up = host.clone(before);
      const std::vector<double> g = values(gate), u = values(up), d = values(dy), old = values(before);
      std::vector<double> forward, into_gate, into_up;
      for (std::size_t i = 0; i < g.size(); ++i) {
        const double s = sigmoid(g[i]);
        forward.push_back(swiglu(g[i], u[i]));
        into_gate.push_back(d[i] * u[i] * (s + g[i] * s * (1 - s)));
        into_up.push_back(old[i] + d[i] * g[i] * s);
      }

      kernels::swiglu_forward(host.stream, gate, up, y);
      kernels::swiglu_backward(host.stream, gate, up, dy, {d_gate, false}, {d_up, true});

      expect_close(y, forward, kRoundings * roundoff(dtype));
      expect_close(d_gate, into_gate, kRoundings * roundoff(dtype));
      expect_close(d_up, into_up, kRoundings * roundoff(dtype));
    }
  }
}

TEST(Pointwise, SwigluBackwardIsTheSlopeOfForward) {
  Host host;
  const Tensor gate = host.random({17}, DType::kF64, 1), up = host.random({17}, DType::kF64, 2);
  const Tensor dy = host.random({17}, DType::kF64, 3);
  const Tensor d_gate = host.random({17}, DType::kF64, 4), d_up = host.empty({17}, DType::kF64);
  const std::vector<double> old = values(d_gate);
  const auto loss = [&](const std::vector<double>& g, const std::vector<double>& u) {
    const Tensor y = host.empty({17}, DType::kF64);
    kernels::swiglu_forward(host.stream, host.tensor({17}, DType::kF64, g), host.tensor({17}, DType::kF64, u),
                            y);
    double sum = 0;
    for (int i = 0; i < 17; ++i) sum += y.data<double>()[i] * dy.data<double>()[i];
    return sum;
  };
  std::vector<double> into_gate, into_up;
  for (std::size_t i = 0; i < 17; ++i) {
    into_gate.push_back(old[i] + slope([&](const auto& g) { return loss(g, values(up)); }, values(gate), i));
    into_up.push_back(slope([&](const auto& u) { return loss(values(gate), u); }, values(up), i));
  }

  kernels::swiglu_backward(host.stream, gate, up, dy, {d_gate, true}, {d_up, false});

  expect_close(d_gate, into_gate, kSlopeTolerance);
  expect_close(d_up, into_up, kSlopeTolerance);
}

TEST(Pointwise, NanAndInfinityComeThrough) {
  Host host;
  for (DType dtype : kFloats) {
    const Tensor gate = host.tensor({6}, dtype, {kNan, 1, kInf, -kInf, 80, -2000});
    const Tensor up = host.tensor({6}, dtype, {1, kNan, 2, 1, 3, 1}), y = host.empty({6}, dtype);
    kernels::swiglu_forward(host.stream, gate, up, y);
    const std::vector<double> out = values(y);
    EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[1]));
    EXPECT_EQ(out[2], kInf);
    EXPECT_TRUE(std::isnan(out[3]));  // infinity times zero, as the formula has it
    EXPECT_EQ(out[4], 240);
    EXPECT_EQ(out[5], 0);

    kernels::add(host.stream, gate, up, y);
    EXPECT_TRUE(std::isnan(values(y)[0]) && values(y)[2] == kInf && values(y)[3] == -kInf);
    kernels::scale(host.stream, gate, 0.0);
    EXPECT_TRUE(std::isnan(values(gate)[0]) && std::isnan(values(gate)[2]));
  }
}

TEST(Pointwise, BitsDoNotDependOnThePlace) {
  Host host;
  for (DType dtype : kFloats) {
    const std::int64_t n = 257;
    const Tensor gate = host.random({n}, dtype, 1), up = host.random({n}, dtype, 2);
    const Tensor whole = host.empty({n}, dtype), d_whole = host.empty({n}, dtype),
                 unused = host.empty({n}, dtype);
    kernels::swiglu_forward(host.stream, gate, up, whole);
    kernels::swiglu_backward(host.stream, gate, up, up, {d_whole, false}, {unused, false});
    for (std::int64_t begin : {1, 2, 15, 16, 250}) {
      const std::int64_t m = n - begin;
      const Tensor part = host.empty({m}, dtype), d_part = host.empty({m}, dtype),
                   rest = host.empty({m}, dtype);
      const Tensor g = gate.range(begin, n), u = up.range(begin, n);
      kernels::swiglu_forward(host.stream, g, u, part);
      kernels::swiglu_backward(host.stream, g, u, u, {d_part, false}, {rest, false});
      EXPECT_TRUE(same_bits(part, whole.range(begin, n)));
      EXPECT_TRUE(same_bits(d_part, d_whole.range(begin, n)));
    }
  }
}

TEST(Pointwise, ThreadsDoNotChangeBits) {
  Host host;
  for (DType dtype : kFloats) {
    const Shape shape{kManyElements};
    const Tensor gate = host.random(shape, dtype, 1), up = host.random(shape, dtype, 2);
    expect_threads_do_not_matter([&] {
      const Tensor y = host.empty(shape, dtype), sum = host.empty(shape, dtype), average = host.clone(gate);
      const Tensor d_gate = host.empty(shape, dtype), d_up = host.clone(up);
      kernels::swiglu_forward(host.stream, gate, up, y);
      kernels::swiglu_backward(host.stream, gate, up, gate, {d_gate, false}, {d_up, true});
      kernels::add(host.stream, gate, up, sum);
      kernels::scale(host.stream, sum, 1.1);
      kernels::lerp(host.stream, average, up, 0.9);
      return std::vector<Tensor>{y, d_gate, d_up, sum, average};
    });
  }
}

TEST(Pointwise, MetaStreamsCountTheSameWork) {
  Host host;
  Allocator nothing{Device{Device::Kind::kMeta, 0}};
  Stream meta{nothing};
  for (Stream* stream : {&host.stream, &meta}) {
    const Tensor x = Tensor::zeros({33}, DType::kF32, *stream, Owner::kBuffers);
    kernels::swiglu_forward(*stream, x, x, Tensor::empty({33}, DType::kF32, *stream, Owner::kBuffers));
  }

  const KernelTotals& cpu = host.stream.profile()[KernelKind::kActivation];
  const KernelTotals& dry = meta.profile()[KernelKind::kActivation];
  EXPECT_EQ(cpu.calls, dry.calls);
  EXPECT_EQ(cpu.flops, dry.flops);
  EXPECT_EQ(dry.bytes, 3 * 33 * 4);
}

TEST(Pointwise, RefusesTensorsThatDiffer) {
  Host host;
  const Tensor a = host.random({3}, DType::kF32, 1), b = host.random({4}, DType::kF32, 1);
  const Tensor c = host.random({3}, DType::kF64, 1);
  EXPECT_THROW(kernels::add(host.stream, a, b, a), Error);
  EXPECT_THROW(kernels::add(host.stream, a, c, a), Error);
}

}  // namespace
}  // namespace dew::test
