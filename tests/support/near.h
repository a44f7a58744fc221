// Numbers in and out of tensors, and comparison of tensors by tolerance and by bits. On a CPU stream or a
// meta stream.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/philox.h"
#include "tensor/tensor.h"

namespace dew::test {

using Numbers = std::vector<double>;

/// Numbers in [-1, 1) that depend on key and index alone.
inline Numbers draw(std::uint64_t key, std::int64_t n) {
  Numbers x;
  for (std::int64_t i = 0; i < n; ++i)
    x.push_back(std::ldexp(philox(key, static_cast<std::uint64_t>(i), 3)[0], -31) - 1.0);
  return x;
}

/// A pool and a stream, and tensors made from numbers. On a meta device the numbers are dropped.
struct Workbench {
  explicit Workbench(Device::Kind kind = Device::Kind::kCpu)
      : allocator(Device{kind, 0}), stream(allocator) {}

  Allocator allocator;
  Stream stream;

  Tensor tensor(const Shape& shape, const Numbers& x, DType dtype = DType::kF64,
                Owner owner = Owner::kBuffers) {
    Tensor t = Tensor::empty(shape, dtype, stream, owner);
    if (t.raw() == nullptr) return t;
    EXPECT_EQ(t.numel(), static_cast<std::int64_t>(x.size()));
    visit_float(dtype, [&](auto zero) {
      using T = decltype(zero);
      for (std::size_t i = 0; i < x.size(); ++i) t.data<T>()[i] = static_cast<T>(x[i]);
    });
    return t;
  }
  Tensor random(const Shape& shape, std::uint64_t key, DType dtype = DType::kF64,
                Owner owner = Owner::kBuffers) {
    return tensor(shape, draw(key, shape.numel()), dtype, owner);
  }
  Tensor ints(const Shape& shape, const std::vector<std::int32_t>& x) {
    Tensor t = Tensor::empty(shape, DType::kI32, stream, Owner::kBuffers);
    if (t.raw() != nullptr) std::memcpy(t.raw(), x.data(), t.bytes());
    return t;
  }
  std::int64_t live(Owner owner) const { return allocator.use().live[static_cast<std::size_t>(owner)]; }
  std::int64_t peak(Owner owner) const { return allocator.use().peak[static_cast<std::size_t>(owner)]; }
};

inline Numbers numbers(const Tensor& x) {
  return visit_float(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* p = x.data<T>();
    return Numbers(p, p + x.numel());
  });
}

inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.numel() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

/// |actual - expected| <= tolerance max(1, |expected|) in every element.
inline void expect_near(const Numbers& actual, const Numbers& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << "element " << i;
}

}  // namespace dew::test
