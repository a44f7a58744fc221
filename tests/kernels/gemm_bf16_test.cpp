// Products of bf16, by the processor's own instruction where it has one and by widening, against f64 sums.
#include "kernels/cpu/gemm_bf16.h"

#include "host.h"
#include "kernels/gemm.h"

namespace dew::test {
namespace {

using kernels::GemmShape;
using kernels::cpu::Bf16Products;

std::vector<Bf16Products> ways() {
  std::vector<Bf16Products> all{Bf16Products::kWidened};
  if (kernels::multiplies_bf16()) all.push_back(Bf16Products::kNative);
  return all;
}

struct Product {
  Tensor a, b, c;
  std::vector<double> before;
};

Product make(Host& host, const GemmShape& s) {
  const DType result = s.wide ? DType::kF32 : DType::kBf16;
  Product p{host.random(s.trans_a ? Shape{s.k, s.m} : Shape{s.m, s.k}, DType::kBf16, 1),
            host.random(s.trans_b ? Shape{s.n, s.k} : Shape{s.k, s.n}, DType::kBf16, 2),
            host.random({s.m, s.n}, result, 3),
            {}};
  p.before = values(p.c);
  return p;
}

void run(Host& host, const GemmShape& s, const Product& p, Bf16Products way) {
  const Tensor scratch = host.empty({kernels::cpu::gemm_bf16_scratch(s, way)}, DType::kF32);
  kernels::cpu::gemm_bf16(s, p.a, p.b, p.c, scratch, way);
}

/// Elements on a walk through c and the last one; references of all would take long.
void expect_right(const GemmShape& s, const Product& p) {
  const std::vector<double> a = values(p.a), b = values(p.b), c = values(p.c);
  const std::int64_t step = std::max<std::int64_t>(1, s.m * s.n / 200);
  const auto expect_at = [&](std::int64_t at) {
    const std::int64_t i = at / s.n, j = at % s.n;
    double sum = s.accumulate ? p.before[static_cast<std::size_t>(at)] : 0;
    for (std::int64_t k = 0; k < s.k; ++k)
      sum += a[static_cast<std::size_t>(s.trans_a ? k * s.m + i : i * s.k + k)] *
             b[static_cast<std::size_t>(s.trans_b ? j * s.k + k : k * s.n + j)];
    // Terms below 4 are summed in f32, in an order of its own: a random walk of sqrt(K) roundings of sums of
    // about 2 sqrt(K). The result is rounded once, to bf16 where it is not wide.
    const double summing = 16 * static_cast<double>(s.k + 1) * roundoff(DType::kF32);
    const double rounding = s.wide ? roundoff(DType::kF32) : roundoff(DType::kBf16);
    ASSERT_NEAR(c[static_cast<std::size_t>(at)], sum, summing + 1.01 * rounding * std::abs(sum))
        << s.m << "x" << s.n << "x" << s.k << " at " << at;
  };
  for (std::int64_t at = 0; at < s.m * s.n; at += step) expect_at(at);
  if (s.m * s.n > 0) expect_at(s.m * s.n - 1);
}

TEST(GemmBf16, IsTheF32SumRoundedOnce) {
  struct Extents {
    std::int64_t m, n, k;
  };
  Host host;
  for (const Extents& x : {Extents{1, 1, 1},
                           {1, 7, 5},
                           {7, 1, 6},
                           {7, 5, 1},
                           {33, 257, 65},
                           {257, 33, 17},
                           {64, 64, 1000},
                           {300, 70, 129},
                           {1100, 40, 33},
                           {13, 1100, 9},
                           {5, 70, 5001},  // longer than a bf16 result takes at once
                           {200, 130, 4100},
                           {4, 3, 0}})
    for (bool trans_a : {false, true})
      for (bool trans_b : {false, true})
        for (bool accumulate : {false, true})
          for (bool wide : {false, true})
            for (Bf16Products way : ways()) {
              const GemmShape s{x.m, x.n, x.k, trans_a, trans_b, accumulate, wide};
              const Product p = make(host, s);
              run(host, s, p, way);
              expect_right(s, p);
            }
}

TEST(GemmBf16, TakesMoreColumnsThanABlockHas) {
  Host host;
  for (const GemmShape& s :
       {GemmShape{5, 4200, 9, false, true, true, false}, GemmShape{5, 4200, 9, true, false, false, true},
        GemmShape{3, 1100, 4100, false, true, true, false}})
    for (Bf16Products way : ways()) {
      const Product p = make(host, s);
      run(host, s, p, way);
      expect_right(s, p);
    }
}

TEST(GemmBf16, DoesNotMindThreadsAndAddresses) {
  Host host;
  for (bool wide : {false, true})
    for (bool trans_a : {false, true})
      for (Bf16Products way : ways())
        for (std::int64_t k : {700, 4500}) {
          const GemmShape s{150, 260, k, trans_a, !trans_a, true, wide};
          expect_threads_do_not_matter([&] {
            const Product p = make(host, s);
            run(host, s, p, way);
            return std::vector<Tensor>{p.c};
          });
          const Product straight = make(host, s), moved = make(host, s);
          run(host, s, straight, way);
          const Product shifted{host.shifted(moved.a), host.shifted(moved.b), host.shifted(moved.c), {}};
          run(host, s, shifted, way);
          EXPECT_TRUE(same_bits(straight.c, shifted.c));
        }
}

TEST(GemmBf16, LetsNanAndInfinityThrough) {
  Host host;
  for (Bf16Products way : ways()) {
    const GemmShape s{3, 20, 7, false, true, false, true};
    Product p = make(host, s);
    std::vector<double> a = values(p.a);
    a[8] = std::nan("");
    a[15] = HUGE_VAL;
    p.a = host.tensor({3, 7}, DType::kBf16, a);
    run(host, s, p, way);
    const std::vector<double> c = values(p.c);
    for (std::size_t j = 0; j < 20; ++j) {
      EXPECT_TRUE(std::isfinite(c[j]));
      EXPECT_TRUE(std::isnan(c[20 + j]));
      EXPECT_TRUE(std::isinf(c[40 + j]));
    }
  }
}

TEST(GemmBf16, IsTakenByGemmItself) {
  Host host;
  const GemmShape s{20, 30, 40, false, true, true, true};
  const Product p = make(host, s);
  kernels::gemm(host.stream, p.a, kernels::Transpose::kNo, p.b, kernels::Transpose::kYes, {p.c, true});
  expect_right(s, p);
  EXPECT_THROW(kernels::gemm(host.stream, p.a, kernels::Transpose::kNo, p.b, kernels::Transpose::kYes,
                             {host.empty({20, 30}, DType::kF64), false}),
               Error);
}

}  // namespace
}  // namespace dew::test
