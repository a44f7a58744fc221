#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

namespace dew {
namespace {

/// A stream on its own pool.
struct Place {
  explicit Place(Device::Kind kind = Device::Kind::kCpu) : allocator(Device{kind, 0}), stream(allocator) {}
  Allocator allocator;
  Stream stream;
};

/// [3, 33, 5] with element i = i.
Tensor counted(Stream& stream) {
  Tensor tensor = Tensor::empty({3, 33, 5}, DType::kF32, stream, Owner::kActivations);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.data<float>()[i] = static_cast<float>(i);
  return tensor;
}

TEST(Tensor, IsUndefinedByDefault) {
  const Tensor tensor;

  EXPECT_FALSE(tensor.defined());
  EXPECT_EQ(tensor.raw(), nullptr);
  EXPECT_THROW(tensor.device(), Error);
}

TEST(Tensor, KnowsShapeTypeAndBytes) {
  Place place;
  const Tensor tensor = Tensor::empty({33, 257}, DType::kF64, place.stream, Owner::kWeights);

  EXPECT_TRUE(tensor.defined());
  EXPECT_EQ(tensor.shape(), (Shape{33, 257}));
  EXPECT_EQ(tensor.dtype(), DType::kF64);
  EXPECT_EQ(tensor.bytes(), 33u * 257u * 8u);
  EXPECT_EQ(tensor.device(), Device{});
}

TEST(Tensor, OfZerosIsZeroOnReusedMemoryToo) {
  Place place;
  counted(place.stream);  // leaves a dirty block in the pool

  const Tensor zeros = Tensor::zeros({3, 33, 5}, DType::kF32, place.stream, Owner::kGradients);

  EXPECT_EQ(place.allocator.system_allocations(), 1);
  for (std::int64_t i = 0; i < zeros.numel(); ++i) ASSERT_EQ(zeros.data<float>()[i], 0.0f) << i;
}

TEST(Tensor, RefusesTheWrongElementType) {
  Place place;
  const Tensor tensor = Tensor::zeros({2}, DType::kF32, place.stream, Owner::kWeights);

  EXPECT_NO_THROW(tensor.data<float>());
  EXPECT_THROW(tensor.data<double>(), Error);
  EXPECT_THROW(tensor.data<std::int32_t>(), Error);
}

TEST(Tensor, RowsAreAViewOfTheSameMemory) {
  Place place;
  const Tensor tensor = counted(place.stream);

  const Tensor middle = tensor.rows(1, 3);
  const Tensor last = middle.rows(1, 2);
  last.data<float>()[0] = -1;

  EXPECT_EQ(middle.shape(), (Shape{2, 33, 5}));
  EXPECT_EQ(middle.data<float>()[0], 165.0f);
  EXPECT_EQ(last.shape(), (Shape{1, 33, 5}));
  EXPECT_EQ(tensor.data<float>()[330], -1.0f);
  EXPECT_EQ(place.allocator.system_allocations(), 1);
}

TEST(Tensor, RangesAndReshapesKeepTheRowMajorOrder) {
  Place place;
  const Tensor tensor = counted(place.stream);

  const Tensor range = tensor.rows(1, 3).range(7, 40);
  const Tensor flat = tensor.reshape({99, 5});

  EXPECT_EQ(range.shape(), Shape{33});
  EXPECT_EQ(range.data<float>()[0], 172.0f);
  EXPECT_EQ(range.data<float>()[32], 204.0f);
  EXPECT_EQ(flat.rows(98, 99).data<float>()[4], 494.0f);
}

TEST(Tensor, ViewsMayBeEmptyAndMayNotLeaveTheTensor) {
  Place place;
  const Tensor tensor = counted(place.stream);

  EXPECT_EQ(tensor.rows(3, 3).shape(), (Shape{0, 33, 5}));
  EXPECT_EQ(tensor.range(495, 495).numel(), 0);
  EXPECT_THROW(tensor.rows(2, 4), Error);
  EXPECT_THROW(tensor.rows(-1, 2), Error);
  EXPECT_THROW(tensor.rows(2, 1), Error);
  EXPECT_THROW(tensor.range(0, 496), Error);
  EXPECT_THROW(tensor.reshape({494}), Error);
  EXPECT_THROW(Tensor::zeros({}, DType::kF32, place.stream, Owner::kBuffers).rows(0, 1), Error);
}

TEST(Tensor, HoldsItsStorageWhileAViewLives) {
  Place place;
  std::optional<Tensor> view;
  {
    const Tensor tensor = counted(place.stream);
    EXPECT_TRUE(tensor.unique());
    view = tensor.rows(2, 3);
    EXPECT_FALSE(tensor.unique());
  }

  EXPECT_TRUE(view->unique());
  EXPECT_EQ(view->data<float>()[0], 330.0f);
  EXPECT_GT(place.allocator.use().total_live, 0);
  view.reset();
  EXPECT_EQ(place.allocator.use().total_live, 0);
}

TEST(Tensor, OnAMetaDeviceHasShapeAndBytesButNoMemory) {
  Place cpu, meta(Device::Kind::kMeta);

  const Tensor real = Tensor::zeros({33, 257}, DType::kF32, cpu.stream, Owner::kWeights);
  const Tensor shadow = Tensor::zeros({33, 257}, DType::kF32, meta.stream, Owner::kWeights);
  const Tensor huge = Tensor::empty({1 << 20, 1 << 20}, DType::kF64, meta.stream, Owner::kActivations);

  EXPECT_TRUE(shadow.defined());
  EXPECT_TRUE(shadow.device().is_meta());
  EXPECT_EQ(shadow.data<float>(), nullptr);
  EXPECT_EQ(shadow.rows(1, 2).range(5, 9).raw(), nullptr);
  const std::size_t weights = static_cast<std::size_t>(Owner::kWeights);
  EXPECT_EQ(meta.allocator.use().live[weights], cpu.allocator.use().live[weights]);
  EXPECT_EQ(huge.bytes(), std::size_t{1} << 43);
}

TEST(Tensor, OfNoElementsTakesNoMemory) {
  Place place;
  const Tensor tensor = Tensor::zeros({0, 5}, DType::kF32, place.stream, Owner::kWeights);

  EXPECT_TRUE(tensor.defined());
  EXPECT_EQ(tensor.raw(), nullptr);
  EXPECT_EQ(place.allocator.use().reserved, 0);
}

}  // namespace
}  // namespace dew
