// A contiguous row-major view of shared storage, cheap to copy. There are no strides: a transpose is a kernel
// or a flag of a matrix product. Views share storage and are read-only by convention.
#pragma once

#include <cstdint>
#include <memory>

#include "base/dtype.h"
#include "base/shape.h"
#include "tensor/storage.h"
#include "tensor/stream.h"

namespace dew {

class Tensor {
 public:
  Tensor() = default;  ///< no storage: `defined()` is false

  /// Uninitialised memory from the stream's pool; on a meta device only its bytes are counted.
  static Tensor empty(const Shape& shape, DType dtype, Stream& stream, Owner owner);
  /// Zero-filled memory.
  static Tensor zeros(const Shape& shape, DType dtype, Stream& stream, Owner owner);

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  Device device() const;
  std::int64_t dim(int index) const { return shape_.dim(index); }
  std::int64_t numel() const { return shape_.numel(); }
  std::size_t bytes() const { return static_cast<std::size_t>(numel()) * size_of(dtype_); }

  /// First element. Throws Error when T is not the dtype. Null on a meta device.
  template <class T>
  T* data() const {
    DEW_CHECK(dtype_of<T>() == dtype_, name_of(dtype_), name_of(dtype_of<T>()));
    return static_cast<T*>(raw());
  }
  void* raw() const;  ///< first byte; null on a meta device and for a storage of no bytes

  /// View of rows [begin, end) of dim 0.
  Tensor rows(std::int64_t begin, std::int64_t end) const;
  /// One-dim view of elements [begin, end) of the row-major order.
  Tensor range(std::int64_t begin, std::int64_t end) const;
  /// View of the same elements under another shape of equal size.
  Tensor reshape(const Shape& shape) const;

  /// True when no other tensor shares the storage, so that it may be written in place.
  bool unique() const { return storage_.use_count() == 1; }

 private:
  std::shared_ptr<Storage> storage_;
  std::int64_t offset_ = 0;  ///< elements
  Shape shape_;
  DType dtype_ = DType::kF32;
};

}  // namespace dew
