// A rectangle of a global tensor as contiguous runs of the global row-major order, and as smaller rectangles.
// Elements are always met in the rectangle's own row-major order.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/layout.h"

namespace dew {

/// Checks that a slab lies within its global tensor. Throws Error.
void check_box(const Slab& box);

/// The longest contiguous runs of a box.
class BoxRuns {
 public:
  /// Throws Error when the box lies outside its tensor.
  explicit BoxRuns(const Slab& box);

  std::int64_t count() const { return count_; }
  std::int64_t length() const { return length_; }  ///< elements of every run

  /// Calls f(global index of the first element) for each run in order.
  template <class F>
  void for_each(F&& f) const {
    std::vector<std::int64_t> at(outer_.size(), 0);
    std::int64_t begin = first_;
    for (std::int64_t run = 0; run < count_; ++run) {
      f(begin);
      for (std::size_t d = outer_.size(); d-- > 0;) {
        begin += outer_[d].stride;
        if (++at[d] < outer_[d].extent) break;
        begin -= outer_[d].stride * outer_[d].extent;
        at[d] = 0;
      }
    }
  }

 private:
  struct Dim {
    std::int64_t extent, stride;  ///< stride in elements of the global tensor
  };
  std::vector<Dim> outer_;  ///< the dims that a run does not cover
  std::int64_t first_ = 0, count_ = 1, length_ = 1;
};

/// The box cut into boxes of at most `max_elements`, in order.
std::vector<Slab> split_box(const Slab& box, std::int64_t max_elements);

}  // namespace dew
