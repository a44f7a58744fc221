// What the bits of attention do not depend on.
#include <gtest/gtest.h>
#include <omp.h>

#include <cstdint>
#include <vector>

#include "attention_run.h"
#include "host.h"
#include "kernels/attention.h"
#include "kernels/cpu/simd/attention_table.h"

namespace dew::kernels {
namespace {

using test::AttentionCase;
using test::AttentionInputs;
using test::AttentionResults;
using test::inputs_of;
using test::OnCpu;
using test::run;
using test::Values;
using test::values_of;

/// Results of both passes as raw numbers.
template <class T>
Values all_bits(const AttentionCase& c, int threads) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(threads);
  const AttentionResults got = run<T>(c, inputs_of(c));
  omp_set_num_threads(before);
  Values all;
  for (const Values* values : {&got.o, &got.log_sum_exp, &got.dq, &got.dk, &got.dv})
    all.insert(all.end(), values->begin(), values->end());
  return all;
}

TEST(Attention, BitsDoNotDependOnTheThreadCount) {
  for (const AttentionCase& c :
       {AttentionCase{.b = 3, .l = 130, .s = 130, .h = 6, .g = 3, .k = 16, .mask = {}},
        AttentionCase{.l = 33, .s = 1100, .h = 2, .g = 1, .k = 8, .mask = {.query_begin = 1067}}}) {
    const Values f32 = all_bits<float>(c, 1), f64 = all_bits<double>(c, 1);

    for (int threads : {2, 3, 5}) {
      EXPECT_EQ(all_bits<float>(c, threads), f32) << threads;
      EXPECT_EQ(all_bits<double>(c, threads), f64) << threads;
    }
  }
}

TEST(Attention, BitsDoNotDependOnAnAddress) {
  const AttentionCase c{.l = 70, .s = 70, .k = 16, .mask = {}};
  const AttentionInputs in = inputs_of(c);
  const Values aligned = run<float>(c, in).o;
  for (std::int64_t shift : {1, 3, 9}) {
    OnCpu cpu;
    const Shape shape{c.b, c.l, c.h, c.k};
    const auto shifted = [&](const Values& values) {
      Values padded(shift, 0);
      padded.insert(padded.end(), values.begin(), values.end());
      const Tensor all = cpu.tensor<float>({shift + c.queries()}, padded);
      return all.range(shift, shift + c.queries()).reshape(shape);
    };
    const Tensor o = shifted(Values(c.queries(), 0));
    const Tensor lse = cpu.tensor<float>({c.b, c.h, c.l}, Values(c.rows(), 0));

    attention_forward(cpu.stream, shifted(in.q), shifted(in.k), shifted(in.v), c.mask, {}, o, lse);

    EXPECT_EQ(values_of<float>(o), aligned) << shift;
  }
}

// bf16 lies at any even address; pairs of it are read as words of four bytes.
TEST(Attention, BitsOfBf16DoNotDependOnAnAddress) {
  test::Host host;
  const Shape shape{2, 70, 2, 16}, sums{2, 2, 70};
  const auto draw = [&](std::uint64_t key) { return host.random(shape, DType::kBf16, key); };
  const Tensor q = draw(1), k = draw(2), v = draw(3), d_o = draw(4);
  const auto results = [&](auto&& placed) {
    const auto room = [&] { return placed(host.empty(shape, DType::kBf16)); };
    const Tensor x = placed(q), y = placed(k), z = placed(v), above = placed(d_o);
    const Tensor o = room(), dx = room(), dy = room(), dz = room(), lse = host.empty(sums, DType::kF32);
    attention_forward(host.stream, x, y, z, {}, {}, o, lse);
    attention_backward(host.stream, x, y, z, {}, {}, o, lse, above, {dx}, {dy}, {dz});
    return std::vector<Tensor>{o, lse, dx, dy, dz};
  };
  const std::vector<Tensor> straight = results([](const Tensor& x) { return x; });
  const std::vector<Tensor> moved = results([&](const Tensor& x) { return host.shifted(x); });
  for (std::size_t i = 0; i < straight.size(); ++i) EXPECT_TRUE(test::same_bits(straight[i], moved[i])) << i;
}

TEST(Attention, ASampleAloneHasTheBitsThatItHasAmongOthers) {
  const AttentionCase pair{.b = 2, .l = 70, .s = 70, .h = 2, .g = 1, .k = 16, .mask = {}};
  AttentionCase one = pair;
  one.b = 1;
  const AttentionInputs both = inputs_of(pair);
  AttentionInputs second;
  const auto tail = [](const Values& x) {
    return Values(x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
  };
  second = {tail(both.q), tail(both.k), tail(both.v), tail(both.d_o)};

  const AttentionResults all = run<float>(pair, both), alone = run<float>(one, second);

  EXPECT_EQ(tail(all.o), alone.o);
  EXPECT_EQ(tail(all.dq), alone.dq);
  EXPECT_EQ(tail(all.dk), alone.dk);
}

template <class T>
std::vector<T> numbers(std::int64_t n, std::uint64_t key) {
  std::vector<T> made;
  for (double x : test::uniform(n, key)) made.push_back(static_cast<T>(x));
  return made;
}

/// Every leaf loop of products and softmax once, on sizes with all kinds of edges.
template <class T>
std::vector<T> all_leaves(const cpu::MatrixOps<T>& matrix, const cpu::AttentionOps<T>& softmax) {
  using Far = cpu::Matrix<const T>;
  constexpr std::int64_t kRows = 31, kColumns = 117, kInner = 45, kWidth = 32;
  const std::vector<T> a = numbers<T>(128 * 128, 1), b = numbers<T>(128 * 128, 2);
  std::vector<T> plain(128 * 128, 1), turned(128 * 128, 1), flipped(128 * 128), scores = a, gradient = b;
  std::vector<T> largest(kWidth, T{-1}), sum(kWidth, T{2}), factor(kWidth), dots(kRows);
  matrix.multiply(kRows, kColumns, kInner, Far{a.data(), 50}, Far{b.data(), 120}, {plain.data(), 119}, true);
  matrix.multiply_transposed(kRows, kColumns, kInner, Far{a.data(), 50}, Far{b.data(), 120},
                             {turned.data(), 119}, false);
  matrix.transpose(kRows, kInner, T{3}, Far{a.data(), 50}, {flipped.data(), kWidth});
  const cpu::TileMask mask{.partial = true, .first = -7, .window = 11};
  softmax.softmax_step(kRows, kWidth, mask, T{1}, {scores.data(), 40}, largest.data(), sum.data(),
                       factor.data());
  softmax.softmax_gradient(kRows, kWidth, mask, T{1}, T{2}, {scores.data(), 40}, {gradient.data(), 41},
                           largest.data(), sum.data());
  softmax.dot_rows(kRows, kInner, Far{a.data(), 50}, Far{b.data(), 51}, dots.data());
  softmax.scale_rows(kRows, kInner, dots.data(), Far{a.data(), 50}, {turned.data(), 119}, true);
  std::vector<T> all;
  for (const std::vector<T>& part : {plain, turned, flipped, scores, gradient, largest, sum, factor, dots})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST(AttentionLeaves, GiveTheSameBitsOnEveryInstructionSet) {
  const auto f32 = [](cpu::Isa isa) {
    return all_leaves(cpu::matrix_table(isa).f32, cpu::attention_table(isa).f32);
  };
  const auto f64 = [](cpu::Isa isa) {
    return all_leaves(cpu::matrix_table(isa).f64, cpu::attention_table(isa).f64);
  };
  for (cpu::Isa isa : {cpu::Isa::kAvx2, cpu::Isa::kAvx512}) {
    if (!cpu::supports(isa)) continue;
    EXPECT_EQ(f32(isa), f32(cpu::Isa::kAvx2));
    EXPECT_EQ(f64(isa), f64(cpu::Isa::kAvx2));
  }
}

}  // namespace
}  // namespace dew::kernels
