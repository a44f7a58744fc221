#include "kernels/rope.h"

#include <limits>

#include "host.h"

namespace dew::test {
namespace {

constexpr double kTheta = 10000;
constexpr double kRoundings = 8;  // two products and a sum of terms below 2, and the table's own rounding

// x [B, L, H, K], the first token at position `begin`.
std::vector<double> turned(const std::vector<double>& x, const Shape& shape, std::int64_t begin,
                           double sign) {
  const std::int64_t length = shape.dim(1), heads = shape.dim(2), width = shape.dim(3), half = width / 2;
  std::vector<double> y(x.size());
  for (std::int64_t h = 0; h < shape.dim(0) * length * heads; ++h) {
    const double position = static_cast<double>(begin + h / heads % length);
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle =
          sign * position * std::pow(kTheta, -2.0 * static_cast<double>(i) / static_cast<double>(width));
      const std::size_t a = static_cast<std::size_t>(h * width + i),
                        b = static_cast<std::size_t>(h * width + half + i);
      y[a] = x[a] * std::cos(angle) - x[b] * std::sin(angle);
      y[b] = x[b] * std::cos(angle) + x[a] * std::sin(angle);
    }
  }
  return y;
}

TEST(Rope, TurnsHalvesByGlobalPosition) {
  Host host;
  for (DType dtype : kStored) {
    for (std::int64_t width : {2, 6, 16, 34, 66}) {
      const Shape shape{2, 5, 3, width};
      const Tensor x = host.random(shape, dtype, 1), y = host.empty(shape, dtype),
                   table = host.empty({5, width}, real_of(dtype));
      kernels::rope_table(host.stream, 7, 12, {kTheta}, table);

      kernels::rope(host.stream, x, table, {}, kernels::RopeDirection::kForward, {y, false});
      expect_close(y, turned(values(x), shape, 7, 1), kRoundings * roundoff(dtype));
      kernels::rope(host.stream, x, table, {}, kernels::RopeDirection::kInverse, {y, false});
      expect_close(y, turned(values(x), shape, 7, -1), kRoundings * roundoff(dtype));
    }
  }
}

TEST(Rope, ATableOfAPartIsAPartOfTheTable) {
  Host host;
  const Tensor whole = host.empty({33, 6}, DType::kF32), part = host.empty({3, 6}, DType::kF32);
  kernels::rope_table(host.stream, 0, 33, {kTheta}, whole);

  kernels::rope_table(host.stream, 30, 33, {kTheta}, part);

  EXPECT_TRUE(same_bits(part, whole.rows(30, 33)));
  EXPECT_EQ(values(whole.rows(0, 1)), (std::vector<double>{1, 1, 1, 0, 0, 0}));
}

TEST(Rope, WorksInPlaceAndAccumulates) {
  Host host;
  for (DType dtype : kStored) {
    const Shape shape{1, 3, 2, 34};
    const Tensor x = host.random(shape, dtype, 1), old = host.random(shape, dtype, 2),
                 y = host.empty(shape, dtype);
    const Tensor table = host.empty({3, 34}, real_of(dtype)), in_place = host.clone(x), sum = host.clone(old);
    const Tensor expected = host.empty(shape, dtype);
    kernels::rope_table(host.stream, 100, 103, {kTheta}, table);

    kernels::rope(host.stream, x, table, {}, kernels::RopeDirection::kForward, {y, false});
    kernels::rope(host.stream, in_place, table, {}, kernels::RopeDirection::kForward, {in_place, false});
    kernels::rope(host.stream, x, table, {}, kernels::RopeDirection::kForward, {sum, true});

    EXPECT_TRUE(same_bits(in_place, y));
    std::vector<double> total = values(y);
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += values(old)[i];
    // The stored turn is rounded once more than the one that is added.
    expect_close(sum, total, 2 * roundoff(dtype));
    EXPECT_THROW(kernels::rope(host.stream, x, table, {}, kernels::RopeDirection::kForward, {x, true}),
                 Error);
  }
}

TEST(Rope, ANanStaysInItsPair) {
  Host host;
  const Tensor x = host.random({1, 1, 1, 34}, DType::kF32, 1), y = host.empty({1, 1, 1, 34}, DType::kF32);
  const Tensor table = host.empty({1, 34}, DType::kF32);
  kernels::rope_table(host.stream, 5, 6, {kTheta}, table);
  x.data<float>()[16] = std::numeric_limits<float>::quiet_NaN();

  kernels::rope(host.stream, x, table, {}, kernels::RopeDirection::kForward, {y, false});

  for (std::size_t i = 0; i < 34; ++i) EXPECT_EQ(std::isnan(values(y)[i]), i == 16 || i == 33);
}

TEST(Rope, BitsDoNotDependOnPlaceAddressOrThreads) {
  Host host;
  for (DType dtype : kStored) {
    const Shape shape{3, 101, 3, 66};
    const Tensor x = host.random(shape, dtype, 1), y = host.empty(shape, dtype),
                 table = host.empty({101, 66}, real_of(dtype));
    kernels::rope_table(host.stream, 0, 101, {kTheta}, table);
    kernels::rope(host.stream, x, table, {}, kernels::RopeDirection::kForward, {y, false});

    const Tensor shifted = host.shifted(x);
    kernels::rope(host.stream, shifted, host.shifted(table), {}, kernels::RopeDirection::kForward,
                  {shifted, false});
    EXPECT_TRUE(same_bits(shifted, y));
    expect_threads_do_not_matter([&] {
      const Tensor z = host.empty(shape, dtype), angles = host.empty({101, 66}, real_of(dtype));
      kernels::rope_table(host.stream, 0, 101, {kTheta}, angles);
      kernels::rope(host.stream, x, angles, {}, kernels::RopeDirection::kForward, {z, false});
      return std::vector<Tensor>{z, angles};
    });
  }
}

TEST(Rope, TakesTheRowsItIsGiven) {
  Host host;
  for (DType dtype : kStored) {
    const Tensor x = host.random({2, 5, 3, 6}, dtype, 1), table = host.empty({9, 6}, real_of(dtype)),
                 y = host.empty({2, 5, 3, 6}, dtype), one = host.empty({1, 1, 3, 6}, dtype);
    kernels::rope_table(host.stream, 0, 9, {kTheta}, table);
    const std::vector<std::int32_t> rows{0, 1, 2, 0, 1, 8, 0, 7, 7, 3};
    const auto turn = [&](const std::vector<std::int32_t>& places) {
      kernels::rope(host.stream, x, table, host.ints(places), kernels::RopeDirection::kForward, {y, false});
    };

    turn(rows);

    for (std::int64_t t = 0; t < 10; ++t) {
      const Tensor token = x.range(18 * t, 18 * (t + 1)).reshape({1, 1, 3, 6});
      const std::int64_t row = rows[static_cast<std::size_t>(t)];
      kernels::rope(host.stream, token, table.rows(row, row + 1), {}, kernels::RopeDirection::kForward,
                    {one, false});
      EXPECT_TRUE(same_bits(one, y.range(18 * t, 18 * (t + 1)))) << t;
    }
    EXPECT_THROW(turn({0, 1, 2, 0, 1, 9, 0, 7, 7, 3}), Error);
    EXPECT_THROW(turn({0, 1}), Error);
  }
}

// The three cases as Llama 3's own code tells them apart: by the wavelength.
TEST(RopeFrequencies, AreStretchedAsLlama3DoesIt) {
  constexpr double kRelative = 1e-15 * 8, kTau = 6.283185307179586;
  const kernels::RopeAngles angles{500000, {8, 1, 4, 8192}};
  const std::vector<double> plain = kernels::rope_frequencies(128, {500000}),
                            stretched = kernels::rope_frequencies(128, angles);
  int kept = 0, slow = 0, between = 0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const double wavelength = kTau / plain[i];
    double expected = plain[i];
    if (wavelength > 8192.0 / 1) {
      expected = plain[i] / 8;
      ++slow;
    } else if (wavelength >= 8192.0 / 4) {
      const double smooth = (8192 / wavelength - 1) / (4 - 1);
      expected = (1 - smooth) * plain[i] / 8 + smooth * plain[i];
      ++between;
    } else {
      ++kept;
    }
    EXPECT_NEAR(stretched[i], expected, kRelative * expected) << i;
  }
  EXPECT_GT(kept, 10);
  EXPECT_GT(slow, 10);
  EXPECT_GT(between, 2);
}

}  // namespace
}  // namespace dew::test
