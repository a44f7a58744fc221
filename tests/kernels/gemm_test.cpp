#include "kernels/gemm.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/philox.h"

namespace dew::kernels {
namespace {

struct Form {
  Transpose a, b;
};
constexpr Form kForms[] = {{Transpose::kNo, Transpose::kYes},  // y = x W^T
                           {Transpose::kNo, Transpose::kNo},   // dx = g W
                           {Transpose::kYes, Transpose::kNo},  // dW = g^T x
                           {Transpose::kYes, Transpose::kYes}};

struct Extents {
  std::int64_t m, n, k;
};

template <class T>
class Product {
 public:
  /// Operands in [-1, 1), and ones where the result goes. `shift` moves all of them off their alignment.
  Product(Extents extents, Form form, bool accumulate, std::int64_t shift = 0)
      : extents_(extents), form_(form), accumulate_(accumulate) {
    const auto [m, n, k] = extents;
    a = filled(form.a == Transpose::kYes ? Shape{k, m} : Shape{m, k}, 1, shift);
    b = filled(form.b == Transpose::kYes ? Shape{n, k} : Shape{k, n}, 2, shift);
    c = filled({m, n}, 3, shift);
    for (std::int64_t i = 0; i < m * n; ++i) c.data<T>()[i] = T{1};
  }

  void run() { gemm(stream, a, form_.a, b, form_.b, {c, accumulate_}); }

  double wanted(std::int64_t i, std::int64_t j) const {
    double sum = accumulate_ ? 1 : 0;
    for (std::int64_t p = 0; p < extents_.k; ++p)
      sum += static_cast<double>(
                 a.data<T>()[form_.a == Transpose::kYes ? p * extents_.m + i : i * extents_.k + p]) *
             static_cast<double>(
                 b.data<T>()[form_.b == Transpose::kYes ? j * extents_.k + p : p * extents_.n + j]);
    return sum;
  }

  std::vector<T> result() const { return {c.data<T>(), c.data<T>() + c.numel()}; }

  Allocator allocator{Device{}};
  Stream stream{allocator};
  Tensor a, b, c;

 private:
  Tensor filled(const Shape& shape, std::uint64_t key, std::int64_t shift) {
    const std::int64_t n = shape.numel();
    Tensor made =
        Tensor::empty({n + shift}, dtype_of<T>(), stream, Owner::kActivations).range(shift, shift + n);
    for (std::int64_t i = 0; i < n; ++i)
      made.data<T>()[i] = static_cast<T>(philox(key, i, 0)[0] * 0x1p-31 - 1);
    return made.reshape(shape);
  }

  Extents extents_;
  Form form_;
  bool accumulate_;
};

/// A sum of K products below 1, plus 1: each addition errs by at most half an ulp of the sum so far, which
/// stays below K + 1. The sums walk at random, so the bound takes sqrt(K) for their size, and four of its
/// deviations.
template <class T>
double bound(std::int64_t k) {
  const double root = std::sqrt(static_cast<double>(k)) + 1;
  return 4 * root * root * std::numeric_limits<T>::epsilon() / 2 + std::numeric_limits<T>::epsilon();
}

template <class T>
void expect_right(const Product<T>& product, const Extents& x, bool accumulate) {
  const std::vector<T> got = product.result();
  const auto expect_at = [&](std::int64_t at) {
    ASSERT_NEAR(got[at], product.wanted(at / x.n, at % x.n), bound<T>(x.k))
        << x.m << "x" << x.n << "x" << x.k << " at " << at << (accumulate ? " added" : "");
  };
  // A walk through all of it and the last corner: whole references of large products would take seconds.
  const std::int64_t step = std::max<std::int64_t>(1, x.m * x.n / 300);
  for (std::int64_t at = 0; at < x.m * x.n; at += step) expect_at(at);
  expect_at(x.m * x.n - 1);
}

template <class T>
void check_sizes() {
  for (const Extents& x : {Extents{1, 1, 1},
                           {1, 7, 5},
                           {7, 1, 5},
                           {7, 5, 1},
                           {1, 1, 300},
                           {33, 257, 65},
                           {257, 33, 17},
                           {64, 64, 1000},
                           {300, 70, 129},
                           {1100, 40, 33},
                           {130, 2100, 9}})
    for (const Form& form : kForms)
      for (bool accumulate : {false, true}) {
        Product<T> product(x, form, accumulate);

        product.run();

        expect_right(product, x, accumulate);
      }
}

TEST(Gemm, InF32AgreesWithTheSum) {
  check_sizes<float>();
}
TEST(Gemm, InF64AgreesWithTheSum) {
  check_sizes<double>();
}

TEST(Gemm, TheBoundTellsOneMissingTerm) {
  Product<float> product({33, 65, 129}, kForms[0], false);
  product.run();
  const double before = product.wanted(5, 7);
  product.a.data<float>()[5 * 129 + 128] = 0;

  EXPECT_GT(std::abs(before - product.wanted(5, 7)), 10 * bound<float>(129));
}

/// The result with `threads` threads, added to ones.
template <class T>
std::vector<T> result_at(int threads, Product<T>& product) {
  const int before = omp_get_max_threads();
  std::fill_n(product.c.template data<T>(), product.c.numel(), T{1});
  omp_set_num_threads(threads);
  product.run();
  omp_set_num_threads(before);
  return product.result();
}

template <class T>
void expect_same_bits(const Extents& x) {
  for (const Form& form : kForms) {
    Product<T> product(x, form, true);
    const std::vector<T> one = result_at(1, product);
    for (int threads : {2, 3, 7})
      ASSERT_EQ(result_at(threads, product), one)
          << x.m << "x" << x.n << "x" << x.k << " at " << threads << " threads";
  }
}

TEST(Gemm, BitsDoNotDependOnTheThreadCount) {
  // Small results of long sums invite a cut along the sum.
  for (const Extents& x : {Extents{64, 64, 4096},
                           {1, 64, 5000},
                           {64, 1, 5000},
                           {1, 1, 300'000},
                           {100, 36, 2111},
                           {384, 384, 130},
                           {65, 130, 1029},
                           {2049, 33, 65},
                           {33, 2500, 65}}) {
    expect_same_bits<float>(x);
    expect_same_bits<double>(x);
  }
}

TEST(Gemm, BitsDoNotDependOnAnAddress) {
  for (const Extents& x : {Extents{33, 65, 129}, {64, 128, 256}, {1, 40, 100}, {40, 1, 100}})
    for (const Form& form : kForms) {
      Product<float> aligned(x, form, true);
      const std::vector<float> wanted = result_at(1, aligned);
      for (std::int64_t shift : {1, 3, 8, 9}) {
        Product<float> shifted(x, form, true, shift);
        EXPECT_EQ(result_at(1, shifted), wanted);
      }
    }
}

TEST(Gemm, ARowHasTheSameBitsWhateverOtherRowsThereAre) {
  constexpr std::int64_t kRows = 200, kColumns = 100, kInner = 1500, kFirst = 77, kFew = 5;
  Product<float> whole({kRows, kColumns, kInner}, kForms[0], false);
  Product<float> few({kFew, kColumns, kInner}, kForms[0], false);
  few.a = whole.a.rows(kFirst, kFirst + kFew);

  whole.run();
  few.run();

  const std::vector<float> all = whole.result();
  const std::vector<float> same(all.begin() + kFirst * kColumns, all.begin() + (kFirst + kFew) * kColumns);
  EXPECT_EQ(few.result(), same);
}

TEST(Gemm, NoInnerDimensionGivesZeroOrLeavesWhatIsThere) {
  Product<float> fresh({3, 4, 0}, kForms[1], false), added({3, 4, 0}, kForms[1], true);

  fresh.run();
  added.run();

  EXPECT_EQ(fresh.result(), std::vector<float>(12, 0));
  EXPECT_EQ(added.result(), std::vector<float>(12, 1));
}

TEST(Gemm, NoRowsOrColumnsAreNoWork) {
  Product<float> no_rows({0, 4, 3}, kForms[0], false), no_columns({4, 0, 3}, kForms[2], false);

  no_rows.run();
  no_columns.run();

  EXPECT_EQ(no_rows.c.numel() + no_columns.c.numel(), 0);
}

TEST(Gemm, NaNComesThrough) {
  for (const Form& form : kForms)
    for (float left : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      Product<float> product({40, 33, 20}, form, false);
      product.a.data<float>()[0] = left;  // row 0, term 0
      product.b.data<float>()[0] = 0;     // column 0, term 0: infinity times zero

      product.run();

      EXPECT_TRUE(std::isnan(product.result()[0]));
      EXPECT_FALSE(std::isfinite(product.result()[1]));
      EXPECT_TRUE(std::isfinite(product.result()[33]));
    }
}

TEST(Gemm, FoldsLeadingDimsAndCountsItsWork) {
  Allocator allocator{Device{}};
  Stream stream(allocator);
  int polls = 0;
  stream.set_progress([&] { ++polls; });
  const Tensor x = Tensor::zeros({2, 3, 4}, DType::kF32, stream, Owner::kActivations);
  const Tensor w = Tensor::zeros({5, 4}, DType::kF32, stream, Owner::kWeights);
  const Tensor y = Tensor::zeros({2, 3, 5}, DType::kF32, stream, Owner::kActivations);

  gemm(stream, x, Transpose::kNo, w, Transpose::kYes, {y, true});

  EXPECT_EQ(stream.profile()[KernelKind::kGemm].flops, 2 * 6 * 5 * 4);
  EXPECT_EQ(stream.profile()[KernelKind::kGemm].bytes, 4 * (24 + 20 + 2 * 30));
  EXPECT_EQ(polls, 0);  // too small to be worth one

  const Tensor large = Tensor::zeros({100, 100}, DType::kF32, stream, Owner::kActivations);
  gemm(stream, large, Transpose::kNo, large, Transpose::kNo,
       {Tensor::zeros({100, 100}, DType::kF32, stream, Owner::kActivations)});

  EXPECT_EQ(polls, 1);
}

TEST(Gemm, OnAMetaDeviceOnlyCounts) {
  Allocator allocator{Device{.kind = Device::Kind::kMeta}};
  Stream stream(allocator);
  const Tensor x = Tensor::empty({2000, 1000}, DType::kF32, stream, Owner::kActivations);

  gemm(stream, x, Transpose::kYes, x, Transpose::kNo,
       {Tensor::empty({1000, 1000}, DType::kF32, stream, Owner::kGradients)});

  EXPECT_EQ(stream.profile().flops(), 2e9 * 2);
}

TEST(Gemm, RefusesShapesAndTypesThatDoNotFit) {
  Allocator allocator{Device{}};
  Stream stream(allocator);
  const auto zeros = [&](const Shape& shape, DType dtype) {
    return Tensor::zeros(shape, dtype, stream, Owner::kActivations);
  };
  const Tensor a = zeros({3, 4}, DType::kF32), b = zeros({4, 5}, DType::kF32), c = zeros({3, 5}, DType::kF32);

  EXPECT_THROW(gemm(stream, a, Transpose::kYes, b, Transpose::kNo, {c}), Error);
  EXPECT_THROW(gemm(stream, a, Transpose::kNo, b, Transpose::kNo, {zeros({5, 3}, DType::kF32)}), Error);
  EXPECT_THROW(gemm(stream, a, Transpose::kNo, zeros({4, 5}, DType::kF64), Transpose::kNo, {c}), Error);
  EXPECT_THROW(gemm(stream, zeros({3, 4}, DType::kI32), Transpose::kNo, zeros({4, 5}, DType::kI32),
                    Transpose::kNo, {zeros({3, 5}, DType::kI32)}),
               Error);
}

}  // namespace
}  // namespace dew::kernels
