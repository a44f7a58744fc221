// Attention within documents, and with dropped weights, against the formula in f64.
#include <gtest/gtest.h>
#include <omp.h>

#include "attention_run.h"

namespace dew::test {
namespace {

/// Documents of drawn lengths, up to `most`: the start of each position's.
std::vector<std::int32_t> drawn_starts(std::int64_t samples, std::int64_t positions, std::int64_t most,
                                       std::uint64_t key) {
  std::vector<std::int32_t> starts;
  for (std::int64_t b = 0; b < samples; ++b) {
    std::int64_t start = 0, left = 0;
    for (std::int64_t i = 0; i < positions; ++i, --left) {
      if (left == 0) {
        start = i;
        left =
            1 + static_cast<std::int64_t>(philox(key, static_cast<std::uint64_t>(b * positions + i), 0)[0] %
                                          static_cast<std::uint64_t>(most));
      }
      starts.push_back(static_cast<std::int32_t>(start));
    }
  }
  return starts;
}

/// Factors of every weight by the generator's definition (kernels/attention.h).
std::vector<double> drawn_factors(const AttentionCase& c, const kernels::AttentionDropout& d) {
  std::vector<double> factors;
  for (std::int64_t ib = 0; ib < c.b; ++ib)
    for (std::int64_t ih = 0; ih < c.h; ++ih)
      for (std::int64_t i = 0; i < c.l; ++i)
        for (std::int64_t j = 0; j < c.s; ++j) {
          const auto query = static_cast<std::uint64_t>(c.mask.query_begin + i),
                     key = static_cast<std::uint64_t>(c.mask.key_begin + j);
          const auto row = static_cast<std::uint64_t>(((d.first_row + ib) << 24) + d.first_head + ih);
          const PhiloxBlock block = philox(d.draw.key, (key << 32) + query / 32 * 8 + query % 8, row);
          const bool dropped = block[query % 32 / 8] < d.draw.rate * 0x1p32;
          factors.push_back(dropped ? 0 : 1 / (1 - d.draw.rate));
        }
  return factors;
}

// Sums of up to S terms of size 1, in vectors; gradients hold products of three such.
template <class T>
void expect_results(const AttentionResults& actual, const AttentionResults& expected) {
  const double tolerance = 2e3 * (sizeof(T) == 8 ? 0x1p-53 : 0x1p-24);
  const auto near = [&](const Values& a, const Values& e, const char* what) {
    for (std::size_t i = 0; i < e.size(); ++i)
      ASSERT_NEAR(a[i], e[i], tolerance * std::max(1.0, std::abs(e[i]))) << what << ' ' << i;
  };
  near(actual.o, expected.o, "o");
  near(actual.dq, expected.dq, "dq");
  near(actual.dk, expected.dk, "dk");
  near(actual.dv, expected.dv, "dv");
}

std::vector<AttentionCase> document_cases() {
  std::vector<AttentionCase> cases;
  for (std::int64_t most : {1, 3, 40, 150})
    for (std::int64_t window : {0, 7})
      for (const auto& [length, begin] : {std::pair{5, 0}, {64, 0}, {131, 0}, {70, 61}, {40, 100}}) {
        // Queries from `begin` on; keys from the row's first position on.
        AttentionCase c{.b = 2, .l = length, .s = begin + length, .h = 4, .g = 2, .k = 5};
        c.mask = {.window = window, .query_begin = begin};
        c.starts = drawn_starts(c.b, begin + length, most, static_cast<std::uint64_t>(most + length));
        cases.push_back(c);
      }
  return cases;
}

TEST(AttentionDocuments, EqualTheFormulaInF64AndF32) {
  for (const AttentionCase& c : document_cases()) {
    const AttentionInputs in = inputs_of(c);
    const AttentionResults expected = attention_reference(c, in);
    expect_results<double>(run<double>(c, in), expected);
    expect_results<float>(run<float>(c, in), expected);
  }
}

// What an exchange calls: keys from later positions on, which the first documents end before.
TEST(AttentionDocuments, EqualTheFormulaForAPartOfTheKeys) {
  for (std::int64_t key_begin : {10, 64, 90}) {
    AttentionCase c{.b = 2, .l = 131, .s = 131 - key_begin, .h = 2, .g = 1, .k = 4};
    c.mask = {.key_begin = key_begin};
    c.starts = drawn_starts(c.b, 131, 50, 9);
    const AttentionInputs in = inputs_of(c);
    expect_results<double>(run<double>(c, in), attention_reference(c, in));
  }
}

TEST(AttentionDocuments, AreWholeRowsWhenEachIsOneDocument) {
  AttentionCase c{.b = 2, .l = 100, .s = 100, .h = 4, .g = 2, .k = 8};
  const AttentionInputs in = inputs_of(c);
  const AttentionResults plain = run<float>(c, in);
  c.starts.assign(200, 0);
  EXPECT_EQ(run<float>(c, in).o, plain.o);
  EXPECT_EQ(run<float>(c, in).dk, plain.dk);
}

TEST(AttentionDropout, EqualsTheFormulaWithTheSameDraws) {
  const kernels::AttentionDropout dropout{{77, 0.4}, 5, 3};
  for (bool documents : {false, true})
    for (const auto& [length, query_begin, key_begin] :
         {std::array{5, 0, 0}, {70, 0, 0}, {131, 13, 13}, {40, 61, 7}}) {
      AttentionCase c{.b = 2, .l = length, .s = query_begin - key_begin + length, .h = 4, .g = 2, .k = 5};
      c.mask = {.query_begin = query_begin, .key_begin = key_begin};
      if (documents) c.starts = drawn_starts(c.b, query_begin + length, 30, 4);
      c.factors = drawn_factors(c, dropout);
      const AttentionInputs in = inputs_of(c);
      const AttentionResults expected = attention_reference(c, in);
      expect_results<double>(run<double>(c, in, false, 7, dropout), expected);
      expect_results<float>(run<float>(c, in, false, 7, dropout), expected);
    }
}

// Inputs, o and the gradients are rounded to bf16, all between in f32: o enters the gradients rounded.
TEST(AttentionBf16, EqualsTheFormulaToItsRounding) {
  constexpr double kRoundings = 8;
  const kernels::AttentionDropout dropout{{77, 0.4}, 5, 3};
  for (bool dropped : {false, true})
    for (bool accumulate : {false, true})
      for (const auto& [length, keys] : {std::pair{5, 5}, {131, 131}, {70, 1300}}) {
        AttentionCase c{.b = 2, .l = length, .s = keys, .h = 4, .g = 2, .k = 24};
        c.mask = {.query_begin = keys - length};
        c.starts = drawn_starts(c.b, keys, 90, 4);
        if (dropped) c.factors = drawn_factors(c, dropout);
        AttentionInputs in = inputs_of(c);
        for (Values* values : {&in.q, &in.k, &in.v, &in.d_o})
          for (double& x : *values) x = static_cast<double>(bf16(x));
        AttentionResults expected = attention_reference(c, in);
        for (Values* gradient : {&expected.dq, &expected.dk, &expected.dv})
          for (double& x : *gradient) x += accumulate ? 2 : 0;

        const AttentionResults got =
            run<bf16>(c, in, accumulate, 2, dropped ? dropout : kernels::AttentionDropout{});

        const auto near = [&](const Values& a, const Values& e, const char* what) {
          double largest = 1;
          for (double x : e) largest = std::max(largest, std::abs(x));
          for (std::size_t i = 0; i < e.size(); ++i)
            ASSERT_NEAR(a[i], e[i], kRoundings * 0x1p-9 * largest) << what << ' ' << i;
        };
        near(got.o, expected.o, "o");
        near(got.log_sum_exp, expected.log_sum_exp, "log_sum_exp");
        near(got.dq, expected.dq, "dq");
        near(got.dk, expected.dk, "dk");
        near(got.dv, expected.dv, "dv");
      }
}

TEST(AttentionDropout, DoesNotMindThreads) {
  AttentionCase c{.b = 2, .l = 131, .s = 131, .h = 4, .g = 2, .k = 8};
  c.starts = drawn_starts(c.b, 131, 30, 4);
  const AttentionInputs in = inputs_of(c);
  const kernels::AttentionDropout dropout{{77, 0.4}, 5, 3};
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const AttentionResults one = run<float>(c, in, false, 7, dropout);
  omp_set_num_threads(3);
  const AttentionResults three = run<float>(c, in, false, 7, dropout);
  omp_set_num_threads(before);
  EXPECT_EQ(one.o, three.o);
  EXPECT_EQ(one.dq, three.dq);
  EXPECT_EQ(one.dv, three.dv);
}

TEST(AttentionDocuments, RefusesStartsThatDoNotFit) {
  OnCpu cpu;
  const Tensor x = cpu.tensor<float>({2, 4, 1, 2}, Values(16)), lse = cpu.tensor<float>({2, 1, 4}, Values(8));
  const auto starts = [&](const Shape& shape) {
    return Tensor::empty(shape, DType::kI32, cpu.stream, Owner::kBuffers);
  };
  const auto run_with = [&](const kernels::AttentionMask& mask) {
    kernels::attention_forward(cpu.stream, x, x, x, mask, {}, x, lse);
  };
  EXPECT_THROW(run_with({.starts = starts({1, 4})}), Error);
  EXPECT_THROW(run_with({.query_begin = 1, .starts = starts({2, 4})}), Error);
  EXPECT_THROW(run_with({.causal = false, .starts = starts({2, 4})}), Error);
}

}  // namespace
}  // namespace dew::test
