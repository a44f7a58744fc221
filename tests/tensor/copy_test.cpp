#include "tensor/copy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace dew {
namespace {

struct Place {
  explicit Place(Device::Kind kind = Device::Kind::kCpu) : allocator(Device{kind, 0}), stream(allocator) {}
  Tensor make(const Shape& shape, DType dtype) {
    return Tensor::zeros(shape, dtype, stream, Owner::kBuffers);
  }
  Allocator allocator;
  Stream stream;
};

TEST(Copy, KeepsEveryByteOfEqualTypes) {
  Place place;
  const Tensor source = place.make({33, 257}, DType::kI32), target = place.make({257, 33}, DType::kI32);
  for (std::int64_t i = 0; i < source.numel(); ++i)
    source.data<std::int32_t>()[i] = static_cast<std::int32_t>(i * 7919);

  copy(place.stream, source, target);

  EXPECT_EQ(std::memcmp(source.raw(), target.raw(), source.bytes()), 0);
}

TEST(Copy, RoundsToNearestEvenWhenItNarrows) {
  Place place;
  const Tensor wide = place.make({4}, DType::kF64), narrow = place.make({4}, DType::kF32);
  const double half_ulp = std::ldexp(1.0, -24);  // half a unit in the last place of 1.0f
  wide.data<double>()[0] = 1 + half_ulp;         // a tie: to the even neighbour, 1
  wide.data<double>()[1] = 1 + 3 * half_ulp;     // a tie: to the even neighbour, 1 + 4 half units
  wide.data<double>()[2] = 0.1;
  wide.data<double>()[3] = 1e300;

  copy(place.stream, wide, narrow);

  EXPECT_EQ(narrow.data<float>()[0], 1.0f);
  EXPECT_EQ(narrow.data<float>()[1], static_cast<float>(1 + 4 * half_ulp));
  EXPECT_EQ(narrow.data<float>()[2], 0.1f);
  EXPECT_EQ(narrow.data<float>()[3], std::numeric_limits<float>::infinity());
}

TEST(Copy, WidensExactlyAndKeepsNaN) {
  Place place;
  const Tensor narrow = place.make({257}, DType::kF32), wide = place.make({257}, DType::kF64);
  for (int i = 0; i < 256; ++i) narrow.data<float>()[i] = static_cast<float>(i) / 3.0f;
  narrow.data<float>()[256] = std::numeric_limits<float>::quiet_NaN();

  copy(place.stream, narrow, wide);

  for (int i = 0; i < 256; ++i)
    ASSERT_EQ(wide.data<double>()[i], static_cast<double>(narrow.data<float>()[i]));
  EXPECT_TRUE(std::isnan(wide.data<double>()[256]));
}

TEST(Copy, MovesWithinOneTensor) {
  Place place;
  const Tensor tensor = place.make({100}, DType::kF32);
  for (int i = 0; i < 100; ++i) tensor.data<float>()[i] = static_cast<float>(i);

  copy(place.stream, tensor.range(0, 60), tensor.range(20, 80));

  for (int i = 0; i < 60; ++i) ASSERT_EQ(tensor.data<float>()[20 + i], static_cast<float>(i));
}

TEST(Copy, RefusesOtherSizesAndCastsOfIntegers) {
  Place place;

  EXPECT_THROW(copy(place.stream, place.make({3}, DType::kF32), place.make({4}, DType::kF32)), Error);
  EXPECT_THROW(copy(place.stream, place.make({3}, DType::kI32), place.make({3}, DType::kF32)), Error);
  EXPECT_THROW(copy(place.stream, place.make({3}, DType::kF32), place.make({3}, DType::kI64)), Error);
}

TEST(Copy, OfNothingIsAllowed) {
  Place place;

  EXPECT_NO_THROW(copy(place.stream, place.make({0}, DType::kF32), place.make({0, 7}, DType::kF64)));
}

TEST(Copy, OnAMetaDeviceOnlyCounts) {
  Place place(Device::Kind::kMeta);

  copy(place.stream, place.make({33}, DType::kF32), place.make({33}, DType::kF64));
  fill(place.stream, place.make({33}, DType::kF32), 1);

  EXPECT_EQ(place.stream.profile()[KernelKind::kPointwise].calls, 2);
  EXPECT_EQ(place.stream.profile()[KernelKind::kPointwise].bytes, 33 * 4 + 33 * 8 + 33 * 4);
  EXPECT_EQ(read_scalar(place.stream, place.make({1}, DType::kF32)), 0);
}

TEST(Fill, SetsAViewAndNothingElse) {
  Place place;
  const Tensor tensor = place.make({257}, DType::kF64);

  fill(place.stream, tensor.range(33, 256), 1.5);

  for (int i = 0; i < 257; ++i) ASSERT_EQ(tensor.data<double>()[i], i >= 33 && i < 256 ? 1.5 : 0.0) << i;
  EXPECT_THROW(fill(place.stream, place.make({1}, DType::kI32), 1), Error);
}

TEST(ReadScalar, GivesElementZeroOfAFloatingTensor) {
  Place place;
  const Tensor tensor = place.make({2}, DType::kF32);
  fill(place.stream, tensor.range(0, 1), 0.25);

  EXPECT_EQ(read_scalar(place.stream, tensor), 0.25);
  EXPECT_THROW(read_scalar(place.stream, place.make({0}, DType::kF32)), Error);
  EXPECT_THROW(read_scalar(place.stream, place.make({1}, DType::kI64)), Error);
}

}  // namespace
}  // namespace dew
