#include "kernels/attention.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <limits>
#include <string>

#include "attention_reference.h"
#include "attention_run.h"

namespace dew::kernels {
namespace {

using test::AttentionCase;
using test::AttentionInputs;
using test::AttentionResults;
using test::inputs_of;
using test::OnCpu;
using test::run;
using test::Values;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double largest_difference(const Values& a, const Values& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;  // infinities
    const double difference = std::abs(a[i] - b[i]);
    largest = difference <= largest ? largest : difference;
    if (std::isnan(difference)) return kInfinity;
  }
  return largest;
}

/// Bounds of the difference between the kernels in T and the formula, for inputs within [-1, 1] and u =
/// epsilon / 2. A score sums K products below 1: it errs by at most K^1.5 u after the division by sqrt(K). A
/// probability then errs by that part of itself, as does its sum, with S u more from adding and some u for
/// the exponential.
template <class T>
double bound_of_result(const AttentionCase& c) {
  const double u = std::numeric_limits<T>::epsilon() / 2, k = static_cast<double>(c.k);
  return u * (2 * k * std::sqrt(k) + 3 * static_cast<double>(c.s) + 16);
}

/// d_p and its mean are sums of K products, of at most K each; divided by sqrt(K) their difference is below 2
/// sqrt(K) and errs by the part above, and once more by that of the probability. The sum over keys has
/// weights of total 1 (dq), the sum over queries the total that a key gets (dk, dv).
template <class T>
double bound_of_gradient(const AttentionCase& c) {
  return 4 * std::sqrt(static_cast<double>(c.k)) * bound_of_result<T>(c);
}

std::string name(const AttentionCase& c) {
  std::string text;
  for (std::int64_t x : {c.b, c.l, c.s, c.h, c.g, c.k, static_cast<std::int64_t>(c.mask.causal),
                         c.mask.window, c.mask.query_begin, c.mask.key_begin})
    text += std::to_string(x) + " ";
  return text;
}

template <class T>
void expect_near(const AttentionCase& c, const AttentionResults& got, const AttentionResults& wanted) {
  const double result = bound_of_result<T>(c), gradient = bound_of_gradient<T>(c);
  EXPECT_LE(largest_difference(got.o, wanted.o), result) << "o of " << name(c);
  EXPECT_LE(largest_difference(got.log_sum_exp, wanted.log_sum_exp), result) << "log_sum_exp of " << name(c);
  EXPECT_LE(largest_difference(got.dq, wanted.dq), gradient) << "dq of " << name(c);
  EXPECT_LE(largest_difference(got.dk, wanted.dk), gradient * wanted.most_used) << "dk of " << name(c);
  EXPECT_LE(largest_difference(got.dv, wanted.dv), gradient * wanted.most_used) << "dv of " << name(c);
}

std::vector<AttentionCase> all_cases() {
  const AttentionMask causal{}, open{.causal = false};
  return {
      {.b = 1, .l = 1, .s = 1, .h = 1, .g = 1, .k = 1, .mask = causal},
      {.b = 2, .l = 33, .s = 33, .h = 4, .g = 2, .k = 16, .mask = causal},
      {.b = 1, .l = 64, .s = 64, .h = 2, .g = 2, .k = 64, .mask = causal},
      {.b = 1, .l = 130, .s = 130, .h = 2, .g = 1, .k = 32, .mask = causal},
      {.b = 2, .l = 70, .s = 70, .h = 3, .g = 1, .k = 48, .mask = causal},
      {.b = 1, .l = 65, .s = 65, .h = 1, .g = 1, .k = 128, .mask = causal},
      {.b = 1, .l = 77, .s = 77, .h = 2, .g = 2, .k = 5, .mask = causal},
      {.b = 1, .l = 1, .s = 257, .h = 2, .g = 1, .k = 16, .mask = {.query_begin = 256}},
      {.b = 1, .l = 257, .s = 1, .h = 1, .g = 1, .k = 33, .mask = causal},
      {.b = 1, .l = 5, .s = 257, .h = 6, .g = 3, .k = 16, .mask = open},
      {.b = 1, .l = 129, .s = 67, .h = 2, .g = 2, .k = 17, .mask = open},
      {.b = 1, .l = 200, .s = 200, .h = 2, .g = 1, .k = 16, .mask = {.window = 1}},
      {.b = 1, .l = 200, .s = 200, .h = 2, .g = 1, .k = 16, .mask = {.window = 20}},
      {.b = 1, .l = 257, .s = 257, .h = 1, .g = 1, .k = 16, .mask = {.window = 64}},
      {.b = 1, .l = 257, .s = 257, .h = 1, .g = 1, .k = 16, .mask = {.window = 100}},
      {.b = 1, .l = 66, .s = 66, .h = 1, .g = 1, .k = 16, .mask = {.window = 1000}},
      // Shards of a sequence: keys behind, ahead of and around the queries.
      {.b = 1, .l = 40, .s = 90, .h = 2, .g = 1, .k = 16, .mask = {.query_begin = 50}},
      {.b = 1, .l = 90, .s = 40, .h = 2, .g = 1, .k = 16, .mask = {.query_begin = 10, .key_begin = 50}},
      {.b = 1,
       .l = 70,
       .s = 70,
       .h = 1,
       .g = 1,
       .k = 16,
       .mask = {.query_begin = 1'000'070, .key_begin = 1'000'000}},
      {.b = 1, .l = 70, .s = 70, .h = 1, .g = 1, .k = 16, .mask = {.query_begin = 3'000'000'000}},
      {.b = 1, .l = 70, .s = 70, .h = 1, .g = 1, .k = 16, .mask = {.query_begin = 0, .key_begin = 70}},
      {.b = 1,
       .l = 70,
       .s = 150,
       .h = 1,
       .g = 1,
       .k = 16,
       .mask = {.window = 30, .query_begin = 100, .key_begin = 13}},
      {.b = 1,
       .l = 150,
       .s = 70,
       .h = 1,
       .g = 1,
       .k = 16,
       .mask = {.window = 30, .query_begin = 100, .key_begin = 90}},
  };
}

TEST(Attention, InF64AgreesWithTheFormula) {
  for (const AttentionCase& c : all_cases()) {
    const AttentionInputs in = inputs_of(c);

    const AttentionResults got = run<double>(c, in);

    expect_near<double>(c, got, test::attention_reference(c, in));
  }
}

TEST(Attention, InF32AgreesWithTheFormula) {
  for (const AttentionCase& c : all_cases()) {
    const AttentionInputs in = inputs_of(c);

    const AttentionResults got = run<float>(c, in);

    expect_near<float>(c, got, test::attention_reference(c, in));
  }
}

TEST(Attention, TheBoundTellsAMaskThatIsOffByOne) {
  for (const AttentionCase& c : {AttentionCase{.l = 130, .s = 130, .k = 16, .mask = {}},
                                 AttentionCase{.l = 130, .s = 130, .k = 16, .mask = {.window = 50}}}) {
    const AttentionInputs in = inputs_of(c);
    AttentionCase wrong = c;
    (c.mask.window > 0 ? wrong.mask.window : wrong.mask.query_begin) += 1;

    const AttentionResults got = run<float>(wrong, in), wanted = test::attention_reference(c, in);

    for (const auto& [a, b] :
         {std::pair{got.o, wanted.o}, {got.dq, wanted.dq}, {got.dk, wanted.dk}, {got.dv, wanted.dv}})
      EXPECT_GT(largest_difference(a, b), 5 * bound_of_gradient<float>(c) * wanted.most_used);
  }
}

TEST(Attention, GradientsAreThoseOfFiniteDifferences) {
  const AttentionCase c{
      .b = 1, .l = 5, .s = 6, .h = 2, .g = 1, .k = 3, .mask = {.window = 4, .query_begin = 1}};
  AttentionInputs in = inputs_of(c);
  const AttentionResults got = run<double>(c, in);
  const auto loss = [&] {
    const Values o = run<double>(c, in).o;
    double sum = 0;
    for (std::size_t i = 0; i < o.size(); ++i) sum += o[i] * in.d_o[i];
    return sum;
  };
  // Central differences err by h^2 times a third derivative of order 1, and by rounding over h.
  constexpr double kStep = 1e-5, kTolerance = 1e-9;

  for (const auto& [input, gradient] : {std::pair{&in.q, &got.dq}, {&in.k, &got.dk}, {&in.v, &got.dv}})
    for (std::size_t i = 0; i < input->size(); ++i) {
      const double kept = (*input)[i];
      (*input)[i] = kept + kStep;
      const double above = loss();
      (*input)[i] = kept - kStep;
      const double below = loss();
      (*input)[i] = kept;
      EXPECT_NEAR((above - below) / (2 * kStep), (*gradient)[i], kTolerance);
    }
}

TEST(Attention, AddsToGradientsWhenAsked) {
  // The second case cuts its keys into parts.
  for (const AttentionCase& c : {AttentionCase{.b = 2, .l = 70, .s = 70, .h = 2, .g = 1, .k = 16, .mask = {}},
                                 AttentionCase{.l = 20, .s = 1100, .k = 8, .mask = {.query_begin = 1080}}}) {
    const AttentionInputs in = inputs_of(c);
    const AttentionResults fresh = run<double>(c, in);

    const AttentionResults added = run<double>(c, in, true, 3);

    // Adding 3 loses at most the last bit of a number below 8.
    constexpr double kTolerance = 8 * 0x1p-52;
    for (const auto& [a, b] : {std::pair{added.dq, fresh.dq}, {added.dk, fresh.dk}, {added.dv, fresh.dv}})
      for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i] - 3, b[i], 20 * kTolerance);
  }
}

TEST(Attention, AQueryThatSeesNoKeyGivesZeroAndNoGradient) {
  const AttentionCase c{.l = 40, .s = 10, .h = 2, .g = 1, .k = 16, .mask = {.window = 5, .key_begin = 20}};
  const AttentionInputs in = inputs_of(c);

  const AttentionResults got = run<float>(c, in);

  for (std::int64_t h = 0; h < c.h; ++h)
    for (std::int64_t i = 0; i < c.l; ++i) {
      const bool blind = i < 20 || i > 33;
      EXPECT_EQ(got.log_sum_exp[h * c.l + i] == -kInfinity, blind) << i;
      for (std::int64_t e = 0; e < c.k; ++e) {
        const std::size_t at = static_cast<std::size_t>(c.query_at(0, i, h) + e);
        if (blind) {
          EXPECT_EQ(got.o[at], 0);
          EXPECT_EQ(got.dq[at], 0);
        }
      }
    }
  // Keys 20 to 29 are all seen: none is left without a gradient.
  for (double x : got.dv) EXPECT_NE(x, 0);
}

TEST(Attention, NoKeysOrNoQueriesLeaveDefinedResults) {
  const AttentionCase no_keys{.l = 3, .s = 0, .k = 4, .mask = {}},
      no_queries{.l = 0, .s = 3, .k = 4, .mask = {}};

  const AttentionResults blind = run<float>(no_keys, inputs_of(no_keys));
  const AttentionResults unasked = run<float>(no_queries, inputs_of(no_queries));

  EXPECT_EQ(blind.o, Values(12, 0));
  EXPECT_EQ(blind.dq, Values(12, 0));
  EXPECT_EQ(blind.log_sum_exp, Values(3, -kInfinity));
  EXPECT_EQ(unasked.dk, Values(12, 0));
  EXPECT_EQ(unasked.dv, Values(12, 0));
}

TEST(Attention, NaNComesThroughToTheQueriesThatSeeIt) {
  const AttentionCase c{.l = 130, .s = 130, .k = 16, .mask = {}};
  constexpr std::int64_t kAt = 100;
  for (Values AttentionInputs::*poisoned : {&AttentionInputs::k, &AttentionInputs::v}) {
    AttentionInputs in = inputs_of(c);
    (in.*poisoned)[c.key_at(0, kAt, 0)] = std::numeric_limits<double>::quiet_NaN();

    const AttentionResults got = run<float>(c, in);

    for (std::int64_t i = 0; i < c.l; ++i) {
      const std::int64_t at = c.query_at(0, i, 0);
      if (i >= kAt) {
        EXPECT_TRUE(std::isnan(got.o[at]) || std::isnan(got.o[at + 1])) << i;
        EXPECT_TRUE(std::isnan(got.dq[at])) << i;
      } else if (i < 64) {  // in a block that does not meet the key
        EXPECT_FALSE(std::isnan(got.o[at])) << i;
      }
    }
    EXPECT_TRUE(std::isnan(got.dk[c.key_at(0, 0, 0)]));
  }
}

TEST(Attention, LargeScoresDoNotOverflow) {
  const AttentionCase c{.l = 70, .s = 70, .k = 16, .mask = {}};
  AttentionInputs in = inputs_of(c);
  for (double& x : in.q) x *= 1000;

  const AttentionResults got = run<float>(c, in);

  for (const Values* values : {&got.o, &got.log_sum_exp, &got.dq, &got.dk, &got.dv})
    for (double x : *values) ASSERT_TRUE(std::isfinite(x));
}

TEST(Attention, CountsTheVisiblePairsAndTheSameMemoryWithoutAny) {
  constexpr std::int64_t kLength = 2048;
  const Shape shape{1, kLength, 2, 16};
  double flops[2];
  std::int64_t peak[2];
  for (int meta : {0, 1}) {
    Allocator allocator{Device{.kind = meta == 1 ? Device::Kind::kMeta : Device::Kind::kCpu}};
    Stream stream(allocator);
    const Tensor x = Tensor::zeros(shape, DType::kF32, stream, Owner::kActivations);
    const Tensor lse = Tensor::zeros({1, 2, kLength}, DType::kF32, stream, Owner::kActivations);
    const Tensor dx = Tensor::zeros(shape, DType::kF32, stream, Owner::kGradients);
    attention_forward(stream, x, x, x, {.window = 3}, {}, dx, lse);
    attention_backward(stream, x, x, x, {.window = 3}, {}, x, lse, x, {dx}, {dx}, {dx});
    flops[meta] = stream.profile()[KernelKind::kAttention].flops;
    peak[meta] = allocator.use().peak[static_cast<std::size_t>(Owner::kBuffers)];
    EXPECT_EQ(allocator.use().live[static_cast<std::size_t>(Owner::kBuffers)], 0);
  }

  constexpr double kPairs = 3.0 * kLength - 3;
  EXPECT_EQ(flops[0], 7 * 2 * kPairs * 2 * 16);
  EXPECT_EQ(flops[1], flops[0]);
  EXPECT_EQ(peak[1], peak[0]);
  // Far from the 16 MiB of one matrix of scores.
  EXPECT_LT(peak[0], omp_get_max_threads() * (std::int64_t{1} << 17) + (std::int64_t{2} << 20));
}

TEST(Attention, ASteadyStepAsksTheSystemForNothing) {
  OnCpu cpu;
  const Shape shape{1, 70, 2, 16};
  const Tensor x = Tensor::zeros(shape, DType::kF32, cpu.stream, Owner::kActivations);
  const Tensor o = Tensor::zeros(shape, DType::kF32, cpu.stream, Owner::kActivations);
  const Tensor lse = Tensor::zeros({1, 2, 70}, DType::kF32, cpu.stream, Owner::kActivations);
  attention_forward(cpu.stream, x, x, x, {}, {}, o, lse);
  const std::int64_t first = cpu.allocator.system_allocations();

  attention_forward(cpu.stream, x, x, x, {}, {}, o, lse);

  EXPECT_EQ(cpu.allocator.system_allocations(), first);
}

TEST(Attention, RefusesShapesThatDoNotFit) {
  OnCpu cpu;
  const auto zeros = [&](const Shape& shape) {
    return Tensor::zeros(shape, DType::kF32, cpu.stream, Owner::kActivations);
  };
  const Tensor q = zeros({1, 4, 3, 8}), lse = zeros({1, 3, 4});

  EXPECT_THROW(attention_forward(cpu.stream, q, zeros({1, 4, 2, 8}), zeros({1, 4, 2, 8}), {}, {}, q, lse),
               Error);
  EXPECT_THROW(attention_forward(cpu.stream, q, zeros({1, 4, 3, 4}), zeros({1, 4, 3, 4}), {}, {}, q, lse),
               Error);
  EXPECT_THROW(attention_forward(cpu.stream, q, q, zeros({1, 5, 3, 8}), {}, {}, q, lse), Error);
  EXPECT_THROW(attention_forward(cpu.stream, q, q, q, {}, {}, q, zeros({1, 4, 3})), Error);
  EXPECT_THROW(attention_forward(cpu.stream, q, q, q, {.causal = false, .window = 4}, {}, q, lse), Error);
}

}  // namespace
}  // namespace dew::kernels
