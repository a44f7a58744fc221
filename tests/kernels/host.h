// What the kernel tests share: a CPU stream, tensors from numbers, comparison by tolerance and by bits.
#pragma once

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "base/philox.h"
#include "tensor/tensor.h"

namespace dew::test {

inline constexpr DType kFloats[] = {DType::kF64, DType::kF32};
/// What activations are stored in.
inline constexpr DType kStored[] = {DType::kF64, DType::kF32, DType::kBf16};
inline constexpr std::int64_t kSizes[] = {0, 1, 3, 17, 33, 257};

/// Half the distance of 1 to the next number.
inline double roundoff(DType dtype) {
  return dtype == DType::kF64 ? 0x1p-53 : dtype == DType::kF32 ? 0x1p-24 : 0x1p-8;
}

/// Numbers in [-2, 2) that depend on key and index alone.
inline std::vector<double> draw(std::uint64_t key, std::int64_t n) {
  std::vector<double> x;
  for (std::int64_t i = 0; i < n; ++i)
    x.push_back(std::ldexp(philox(key, static_cast<std::uint64_t>(i), 7)[0], -30) - 2.0);
  return x;
}

struct Host {
  Allocator allocator{Device{}};
  Stream stream{allocator};

  Tensor empty(const Shape& shape, DType dtype) {
    return Tensor::empty(shape, dtype, stream, Owner::kBuffers);
  }
  Tensor tensor(const Shape& shape, DType dtype, const std::vector<double>& x) {
    Tensor t = empty(shape, dtype);
    EXPECT_EQ(t.numel(), static_cast<std::int64_t>(x.size()));
    visit_compute(dtype, [&](auto zero) {
      using T = decltype(zero);
      for (std::size_t i = 0; i < x.size(); ++i) t.data<T>()[i] = static_cast<T>(static_cast<Real<T>>(x[i]));
    });
    return t;
  }
  Tensor random(const Shape& shape, DType dtype, std::uint64_t key) {
    return tensor(shape, dtype, draw(key, shape.numel()));
  }
  Tensor ints(const std::vector<std::int32_t>& x) {
    Tensor t = empty({static_cast<std::int64_t>(x.size())}, DType::kI32);
    if (!x.empty()) std::memcpy(t.raw(), x.data(), t.bytes());
    return t;
  }
  /// The same elements at a storage offset of one element.
  Tensor shifted(const Tensor& x) {
    const Tensor room = empty({x.numel() + 1}, x.dtype());
    Tensor view = room.range(1, x.numel() + 1).reshape(x.shape());
    if (x.numel() > 0) std::memcpy(view.raw(), x.raw(), x.bytes());
    return view;
  }
  Tensor clone(const Tensor& x) {
    Tensor y = empty(x.shape(), x.dtype());
    if (x.numel() > 0) std::memcpy(y.raw(), x.raw(), x.bytes());
    return y;
  }
};

inline std::vector<double> values(const Tensor& x) {
  return visit_compute(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* p = x.data<T>();
    std::vector<double> out;
    for (std::int64_t i = 0; i < x.numel(); ++i)
      out.push_back(static_cast<double>(static_cast<Real<T>>(p[i])));
    return out;
  });
}

inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.numel() == b.numel() &&
         (a.numel() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

/// |actual - expected| <= tolerance max(1, |expected|) in every element.
inline void expect_close(const Tensor& actual, const std::vector<double>& expected, double tolerance) {
  const std::vector<double> x = values(actual);
  ASSERT_EQ(x.size(), expected.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_NEAR(x[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << "element " << i;
}

/// Runs `make` with 1, 2 and 3 threads and expects the same bits of all tensors that it returns.
inline void expect_threads_do_not_matter(const std::function<std::vector<Tensor>()>& make) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const std::vector<Tensor> one = make();
  for (int threads : {2, 3}) {
    omp_set_num_threads(threads);
    const std::vector<Tensor> more = make();
    for (std::size_t i = 0; i < one.size(); ++i)
      EXPECT_TRUE(same_bits(one[i], more[i])) << threads << " threads, " << i;
  }
  omp_set_num_threads(before);
}

/// Central difference of f at x[i], f64.
inline double slope(const std::function<double(const std::vector<double>&)>& f, std::vector<double> x,
                    std::size_t i) {
  constexpr double kStep = 1e-5;
  const double middle = x[i];
  x[i] = middle + kStep;
  const double above = f(x);
  x[i] = middle - kStep;
  return (above - f(x)) / (2 * kStep);
}

/// The error of `slope`: kStep^2 / 6 of a third derivative of some tens, and roundoff / kStep.
inline constexpr double kSlopeTolerance = 1e-8;

}  // namespace dew::test
