#include "base/shape.h"

#include <algorithm>
#include <ostream>

#include "base/check.h"

namespace dew {

Shape::Shape(std::initializer_list<std::int64_t> extents)
    : Shape(std::span<const std::int64_t>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const std::int64_t> extents) : dims_(static_cast<int>(extents.size())) {
  DEW_CHECK(extents.size() <= kMaxDims, extents.size());
  for (std::int64_t extent : extents) DEW_CHECK(extent >= 0, extent);
  std::copy(extents.begin(), extents.end(), extents_.begin());
}

std::int64_t Shape::dim(int index) const {
  const int at = index < 0 ? index + dims_ : index;
  DEW_CHECK(at >= 0 && at < dims_, index, str());
  return extents_[static_cast<std::size_t>(at)];
}

std::int64_t Shape::numel() const {
  std::int64_t product = 1;
  for (std::int64_t extent : extents()) product *= extent;
  return product;
}

std::string Shape::str() const {
  std::string text = "[";
  for (int i = 0; i < dims_; ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(extents_[static_cast<std::size_t>(i)]);
  }
  return text + "]";
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << shape.str();
}

}  // namespace dew
