// The leaf loops: exp over its range, and that every instruction set give the same bits.
#include <bit>
#include <limits>

#include "host.h"
#include "kernels/cpu/simd/table.h"

namespace dew::test {
namespace {

using kernels::cpu::Isa;
using kernels::cpu::ops_of;
using kernels::cpu::real_ops_of;
using kernels::cpu::simd_table;

template <class T>
constexpr T kInf = std::numeric_limits<T>::infinity();

std::vector<Isa> supported() {
  std::vector<Isa> out;
  for (Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16})
    if (kernels::cpu::supports(isa)) out.push_back(isa);
  return out;
}

template <class T>
std::vector<T> numbers(std::uint64_t key, std::int64_t n) {
  std::vector<T> out;
  for (double x : draw(key, n)) out.push_back(static_cast<T>(static_cast<Real<T>>(x)));
  return out;
}

/// Distance in units of the last place of the expected value, denormal numbers included.
template <class T>
double ulps(T actual, long double expected) {
  int exponent = 0;
  std::frexp(expected, &exponent);
  using Limits = std::numeric_limits<T>;
  const int unit = std::max(exponent - Limits::digits, Limits::min_exponent - Limits::digits);
  return static_cast<double>(std::abs(static_cast<long double>(actual) - expected) / std::ldexp(1.0L, unit));
}

template <class T>
class Simd : public ::testing::Test {};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Simd, Floats);

TYPED_TEST(Simd, ExpIsGoodToAnUlpOverItsRange) {
  using T = TypeParam;
  // Reduced argument, polynomial and scaling round once each; 1.06 is met over all f32 and 0.99 in f64
  // samples.
  constexpr double kUlps = 1.1;
  constexpr int kCount = 50001;
  const double low = sizeof(T) == 4 ? -103.9 : -745, high = sizeof(T) == 4 ? 88.72 : 709.78;
  std::vector<T> x, y(kCount);
  for (int i = 0; i < kCount; ++i) x.push_back(static_cast<T>(low + (high - low) * i / (kCount - 1)));
  for (Isa isa : supported()) {
    real_ops_of<T>(simd_table(isa)).exp(x.data(), y.data(), kCount);
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_LE(ulps(y[i], std::exp(static_cast<long double>(x[i]))), kUlps) << x[i];
  }
}

TYPED_TEST(Simd, ExpKeepsItsSpecialValues) {
  using T = TypeParam;
  const T overflow = sizeof(T) == 4 ? T(88.73) : T(709.79), vanish = sizeof(T) == 4 ? T(-104) : T(-745.2);
  const std::vector<T> x{0,
                         T(-0.0),
                         kInf<T>,
                         -kInf<T>,
                         overflow,
                         vanish,
                         std::numeric_limits<T>::quiet_NaN(),
                         std::numeric_limits<T>::max(),
                         std::numeric_limits<T>::lowest(),
                         std::numeric_limits<T>::denorm_min()};
  const std::vector<T> expected{1, 1, kInf<T>, 0, kInf<T>, 0, 0, kInf<T>, 0, 1};
  for (Isa isa : supported()) {
    std::vector<T> y(x.size());
    real_ops_of<T>(simd_table(isa)).exp(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i])) {
        EXPECT_TRUE(std::isnan(y[i]));
      } else {
        EXPECT_EQ(y[i], expected[i]) << x[i];
      }
    }
  }
}

std::uint64_t bits(double x) {
  return std::bit_cast<std::uint64_t>(x);
}

/// What the leaves of one table make of inputs of n elements, and that they write nothing beyond them.
template <class T>
class LeafRun {
 public:
  LeafRun(Isa isa, std::int64_t elements) : table(simd_table(isa)), n(elements) {}

  const kernels::cpu::SimdTable& table;
  const std::int64_t n;
  const std::vector<T> a = numbers<T>(1, 3 * n), b = numbers<T>(2, 3 * n), c = numbers<T>(3, 3 * n);
  std::vector<double> all;

  void keep(const std::vector<T>& x) {
    for (T value : x) all.push_back(static_cast<double>(static_cast<Real<T>>(value)));
  }
  void keep(const std::vector<double>& x) requires(!std::is_same_v<T, double>) {
    all.insert(all.end(), x.begin(), x.end());
  }
  template <class Fill>
  void fresh(std::int64_t count, Fill fill) {
    const T guard = static_cast<T>(Real<T>(12288));
    std::vector<T> y(static_cast<std::size_t>(count + 1), guard);
    fill(y.data());
    EXPECT_EQ(static_cast<Real<T>>(y.back()), static_cast<Real<T>>(guard)) << "wrote past the end";
    keep(y);
  }

  /// Of every format that activations have.
  void activations() {
    const auto& ops = ops_of<T>(table);
    using R = Real<T>;
    fresh(n, [&](T* y) { ops.add(a.data(), b.data(), y, n); });
    fresh(n, [&](T* y) { ops.swiglu_forward(a.data(), b.data(), y, n); });
    fresh(n, [&](T* y) { ops.blend(R(0.3), y, R(0.7), a.data(), n); });
    std::vector<T> other(static_cast<std::size_t>(n) + 1, T(R(0.5)));
    fresh(n,
          [&](T* y) { ops.swiglu_backward(a.data(), b.data(), c.data(), y, false, other.data(), true, n); });
    keep(other);
    const T* terms[] = {a.data(), b.data(), c.data()};
    fresh(n, [&](T* y) { ops.sum_in_order(terms, 3, y, true, 0, n); });
    for (bool exact : {true, false}) {
      fresh(n, [&](T* y) { ops.gelu_forward(exact, a.data(), y, n); });
      fresh(n, [&](T* y) { ops.gelu_backward(exact, a.data(), b.data(), y, true, n); });
    }
    const kernels::cpu::DropoutDraw draw{.key = 5, .row = 3, .bound = 0.4 * 0x1p32, .scale = 1 / 0.6};
    fresh(n, [&](T* y) { ops.dropout_line(draw, 2, 13, a.data(), y, true, n); });
    const std::vector<R> cosine = numbers<R>(4, n), sine = numbers<R>(5, n);
    if (n % 2 == 0)
      fresh(n, [&](T* y) { ops.rope_heads(a.data(), cosine.data(), sine.data(), true, y, true, 1, n / 2); });
    norms();
  }

  void norms() {
    const auto& ops = ops_of<T>(table);
    using R = Real<T>;
    R inverse{};
    kernels::cpu::Moments<R> moments{};
    std::vector<R> sums(static_cast<std::size_t>(n) + 1, R(0.25)), shifts = sums;
    fresh(n, [&](T* y) { inverse = ops.rms_forward(a.data(), b.data(), 1e-5, y, n); });
    fresh(n, [&](T* y) { ops.rms_backward(a.data(), b.data(), inverse, c.data(), y, true, sums.data(), n); });
    fresh(n, [&](T* y) { moments = ops.layer_norm_forward(a.data(), b.data(), c.data(), 1e-5, y, n); });
    all.insert(all.end(), {static_cast<double>(moments.mean), static_cast<double>(moments.inverse)});
    for (R* bias_sums : {static_cast<R*>(nullptr), shifts.data()})
      fresh(n, [&](T* y) {
        ops.layer_norm_backward(a.data(), b.data(), moments, c.data(), y, true, sums.data(), bias_sums, n);
      });
    EXPECT_EQ(sums.back(), R(0.25));
    EXPECT_EQ(shifts.back(), R(0.25));
    all.insert(all.end(), sums.begin(), sums.end());
    all.insert(all.end(), shifts.begin(), shifts.end());
  }

  /// Of f32 and f64 alone.
  void reals() {
    const auto& ops = real_ops_of<T>(table);
    fresh(n, [&](T* y) { ops.exp(a.data(), y, n); });
    fresh(n, [&](T* y) { ops.scale(y, 1.3, n); });
    fresh(n, [&](T* y) { ops.lerp(y, b.data(), 0.1, n); });
    all.push_back(ops.sum_of_squares(a.data(), n));
    const kernels::cpu::RowSum sum = ops.log_sum_exp_row(a.data(), n);
    all.insert(all.end(), {sum.largest, sum.sum});
    std::vector<T> row(a.begin(), a.begin() + n);
    EXPECT_EQ(ops.exp_row(row.data(), n).sum, sum.sum);
    keep(row);
    const kernels::cpu::AdamWConstants constants{.decay = 0.99,
                                                 .beta1 = 0.9,
                                                 .one_minus_beta1 = 0.1,
                                                 .beta2 = 0.95,
                                                 .one_minus_beta2 = 0.05,
                                                 .step_size = 0.01,
                                                 .eps = 1e-8};
    std::vector<T> m(static_cast<std::size_t>(n) + 1, T(0.5)), v(static_cast<std::size_t>(n) + 1, T(0.5));
    fresh(n, [&](T* w) { ops.adamw(constants, a.data(), w, m.data(), v.data(), n); });
    keep(m);
    keep(v);
    fresh(n, [&](T* y) { ops.fill_normal(77, 5, 0.5, y, n); });
  }
};

constexpr std::int64_t kLengths[] = {1, 3, 7, 8, 9, 15, 16, 17, 32, 33, 34, 100, 257};

void expect_same_bits(const std::vector<double>& a, const std::vector<double>& b, std::int64_t n) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_EQ(bits(a[i]), bits(b[i])) << n << " elements, " << i << ": " << a[i] << ' ' << b[i];
}

TYPED_TEST(Simd, EveryInstructionSetGivesTheSameBits) {
  using T = TypeParam;
  for (std::int64_t n : kLengths) {
    LeafRun<T> first(Isa::kAvx2, n);
    first.activations();
    first.reals();
    for (Isa isa : supported()) {
      LeafRun<T> other(isa, n);
      other.activations();
      other.reals();
      expect_same_bits(first.all, other.all, n);
    }
  }
}

TEST(SimdOfBf16, GivesTheSameBitsOnEveryInstructionSet) {
  for (std::int64_t n : kLengths) {
    LeafRun<bf16> first(Isa::kAvx2, n);
    first.activations();
    for (Isa isa : supported()) {
      LeafRun<bf16> other(isa, n);
      other.activations();
      expect_same_bits(first.all, other.all, n);
    }
  }
}

template <class From, class To>
void expect_converted(const kernels::cpu::Conversions<From, To>& conversions, std::int64_t n) {
  const std::vector<From> x = numbers<From>(1, n);
  std::vector<To> y(static_cast<std::size_t>(n) + 1, To(0.25)), z = y;
  conversions.add(x.data(), y.data(), n);
  conversions.cast(x.data(), z.data(), n);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const To wide = static_cast<To>(static_cast<Real<From>>(x[i]));
    EXPECT_EQ(y[i], To(0.25) + wide);
    EXPECT_EQ(z[i], wide);
  }
  EXPECT_EQ(y.back(), To(0.25));
  EXPECT_EQ(z.back(), To(0.25));
}

TEST(SimdTable, ConvertsBetweenFormats) {
  for (Isa isa : supported())
    for (std::int64_t n : kSizes) {
      const kernels::cpu::SimdTable& table = simd_table(isa);
      expect_converted(table.f32_to_f64, n);
      expect_converted(table.bf16_to_f32, n);
      expect_converted(table.bf16_to_f64, n);
      std::vector<float> x = numbers<float>(1, n);
      // Ties, the ends of the range, and around the smallest normal number, below which all becomes 0.
      const float edges[] = {1 + 0x1p-8F, 1 + 0x1p-7F + 0x1p-8F, 3.4e38F,          kInf<float>, -kInf<float>,
                             0x1p-126F,   -0x1.fffffcp-127F,     0x1.fffffcp-127F, -1e-40F,     -0.0F};
      for (std::size_t i = 0; i < x.size() && i < std::size(edges); ++i) x[i] = edges[i];
      const std::vector<double> wide(x.begin(), x.end());
      std::vector<bf16> y(static_cast<std::size_t>(n) + 1), z(static_cast<std::size_t>(n) + 1);
      table.f32_to_bf16(x.data(), y.data(), n);
      table.f64_to_bf16(wide.data(), z.data(), n);
      for (std::size_t i = 0; i < x.size(); ++i) {
        EXPECT_EQ(y[i].bits, bf16(x[i]).bits);
        EXPECT_EQ(z[i].bits, bf16(x[i]).bits);
      }
      EXPECT_EQ(y.back().bits, 0);
      EXPECT_EQ(z.back().bits, 0);
    }
}

}  // namespace
}  // namespace dew::test
