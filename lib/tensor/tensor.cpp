#include "tensor/tensor.h"

#include <cstring>

namespace dew {

Tensor Tensor::empty(const Shape& shape, DType dtype, Stream& stream, Owner owner) {
  Tensor tensor;
  tensor.shape_ = shape;
  tensor.dtype_ = dtype;
  tensor.storage_ = std::make_shared<Storage>(stream.allocator(), tensor.bytes(), owner);
  return tensor;
}

Tensor Tensor::zeros(const Shape& shape, DType dtype, Stream& stream, Owner owner) {
  Tensor tensor = empty(shape, dtype, stream, owner);
  if (tensor.raw() != nullptr) std::memset(tensor.raw(), 0, tensor.bytes());
  return tensor;
}

Device Tensor::device() const {
  DEW_CHECK(defined());
  return storage_->device();
}

void* Tensor::raw() const {
  if (!defined() || storage_->block() == nullptr) return nullptr;
  return static_cast<char*>(storage_->block()) + static_cast<std::size_t>(offset_) * size_of(dtype_);
}

Tensor Tensor::rows(std::int64_t begin, std::int64_t end) const {
  DEW_CHECK(0 <= begin && begin <= end && end <= dim(0), begin, end, shape_);
  std::array<std::int64_t, Shape::kMaxDims> extents{};
  std::int64_t row = 1;
  for (int i = 0; i < shape_.dims(); ++i) {
    extents[static_cast<std::size_t>(i)] = i == 0 ? end - begin : dim(i);
    if (i > 0) row *= dim(i);
  }
  Tensor view = *this;
  view.shape_ = Shape(std::span<const std::int64_t>(extents.data(), static_cast<std::size_t>(shape_.dims())));
  view.offset_ += begin * row;
  return view;
}

Tensor Tensor::range(std::int64_t begin, std::int64_t end) const {
  DEW_CHECK(0 <= begin && begin <= end && end <= numel(), begin, end, shape_);
  Tensor view = *this;
  view.shape_ = Shape{end - begin};
  view.offset_ += begin;
  return view;
}

Tensor Tensor::reshape(const Shape& shape) const {
  DEW_CHECK(shape.numel() == numel(), shape, shape_);
  Tensor view = *this;
  view.shape_ = shape;
  return view;
}

}  // namespace dew
