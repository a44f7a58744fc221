#include "base/dtype.h"

#include <gtest/gtest.h>

#include <cstdint>
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
