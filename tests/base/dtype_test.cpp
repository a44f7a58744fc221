#include "base/dtype.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

namespace dew {
namespace {

template <class T>
void expect_type(DType dtype, std::string_view name) {
  EXPECT_EQ(dtype_of<T>(), dtype);
  EXPECT_EQ(size_of(dtype), sizeof(T));
  EXPECT_EQ(name_of(dtype), name);
}

TEST(DType, AgreesWithTheTypesOfTheLanguage) {
  expect_type<double>(DType::kF64, "f64");
  expect_type<float>(DType::kF32, "f32");
  expect_type<std::int64_t>(DType::kI64, "i64");
  expect_type<std::int32_t>(DType::kI32, "i32");
  expect_type<std::uint8_t>(DType::kU8, "u8");
}

TEST(Bf16, RoundsToNearestEvenAndDenormalNumbersToZero) {
  const struct {
    float from;
    std::uint16_t bits;
  } cases[] = {
      {1, 0x3F80},                      // as it is
      {1 + 0x1p-8F, 0x3F80},            // in the middle: to the even one, below
      {1 + 0x1p-7F + 0x1p-8F, 0x3F82},  // and above
      {1 + 0x1p-8F + 0x1p-16F, 0x3F81},
      {3.4e38F, 0x7F80},  // past the largest number
      {-0.0F, 0x8000},
      {0x1p-126F, 0x0080},    // the smallest normal number
      {0x1.fffffcp-127F, 0},  // would round up to it
      {-1e-40F, 0x8000},
  };
  for (const auto& [from, bits] : cases) EXPECT_EQ(bf16(from).bits, bits) << from;
  const float nan = static_cast<float>(bf16(std::numeric_limits<float>::quiet_NaN()));
  EXPECT_NE(nan, nan);
}

TEST(DType, RefusesAValueOutsideTheList) {
  EXPECT_THROW(size_of(static_cast<DType>(200)), Error);
  EXPECT_THROW(name_of(static_cast<DType>(200)), Error);
}

TEST(DType, VisitsFloatingTypesOnly) {
  const auto size = [](auto zero) { return sizeof(zero); };

  EXPECT_EQ(visit_float(DType::kF64, size), 8u);
  EXPECT_EQ(visit_float(DType::kF32, size), 4u);
  EXPECT_TRUE(visit_float(DType::kF32, [](auto zero) { return std::is_same_v<decltype(zero), float>; }));
  EXPECT_THROW(visit_float(DType::kI32, size), Error);
  EXPECT_THROW(visit_float(DType::kI64, size), Error);
  EXPECT_THROW(visit_float(DType::kU8, size), Error);
}

}  // namespace
}  // namespace dew
