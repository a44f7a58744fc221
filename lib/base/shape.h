// Extents of a contiguous row-major tensor: at most six dims, no heap.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace dew {

class Shape {
 public:
  static constexpr int kMaxDims = 6;

  Shape() = default;  ///< a scalar: no dims, one element
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(std::span<const std::int64_t> extents);

  int dims() const { return dims_; }
  /// Extent of a dim; negative counts from the end. Throws Error outside the dims.
  std::int64_t dim(int index) const;
  std::int64_t numel() const;
  std::span<const std::int64_t> extents() const { return {extents_.data(), static_cast<std::size_t>(dims_)}; }
  std::string str() const;  ///< "[2, 3]"

  bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, kMaxDims> extents_{};
  int dims_ = 0;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);

}  // namespace dew
