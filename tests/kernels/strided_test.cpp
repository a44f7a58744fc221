// Boxes moved between layouts, and partial attention results put together.
#include "kernels/strided.h"

#include <gtest/gtest.h>

#include <limits>

#include "kernels/attention.h"
#include "support/near.h"

namespace dew::test {
namespace {

using kernels::copy_strided;
using kernels::StridedView;
using Extents = std::array<std::int64_t, 4>;

void expect_plain_loops(const Extents& e, const StridedView& from, const StridedView& to, bool accumulate,
                        Stream& stream) {
  const Numbers source = numbers(from.tensor);
  Numbers expected = numbers(to.tensor);
  for (std::int64_t i = 0; i < e[0]; ++i)
    for (std::int64_t j = 0; j < e[1]; ++j)
      for (std::int64_t k = 0; k < e[2]; ++k)
        for (std::int64_t l = 0; l < e[3]; ++l) {
          const auto at = [&](const StridedView& v) {
            return static_cast<std::size_t>(v.offset + i * v.strides[0] + j * v.strides[1] +
                                            k * v.strides[2] + l);
          };
          const double x = source[at(from)];
          double& y = expected[at(to)];
          y = accumulate ? y + x : x;
        }
  copy_strided(stream, e, from, to, accumulate);
  EXPECT_EQ(numbers(to.tensor), expected);
}

TEST(CopyStrided, MovesAndAddsBoxes) {
  Workbench bench;
  for (bool accumulate : {false, true}) {
    const Tensor x = bench.random({4 * 3 * 5 * 33}, 1), y = bench.random({4 * 3 * 5 * 33}, 2);
    expect_plain_loops({3, 4, 5, 33}, {x, 0, {5 * 33, 3 * 5 * 33, 33, 1}},
                       {y, 0, {4 * 5 * 33, 5 * 33, 33, 1}}, accumulate, bench.stream);
    expect_plain_loops({1, 2, 3, 7}, {x, 11, {0, 100, 40, 1}}, {y, 5, {0, 90, 20, 1}}, accumulate,
                       bench.stream);
    // A source stride of 0 repeats.
    expect_plain_loops({1, 3, 2, 257}, {x, 1, {0, 0, 300, 1}}, {y, 2, {0, 600, 260, 1}}, accumulate,
                       bench.stream);
  }
}

TEST(CopyStrided, DoesNothingToAnEmptyBox) {
  Workbench bench;
  const Tensor x = bench.random({5}, 1), y = bench.random({5}, 2);
  const Numbers before = numbers(y);
  copy_strided(bench.stream, {1, 0, 3, 5}, {x, 0, {0, 5, 5, 1}}, {y, 0, {0, 5, 5, 1}}, false);
  EXPECT_EQ(numbers(y), before);
}

TEST(CopyStrided, RefusesABoxThatLeavesItsTensor) {
  Workbench bench;
  const Tensor x = bench.random({10}, 1), y = bench.random({10}, 2);
  EXPECT_THROW(copy_strided(bench.stream, {1, 1, 2, 6}, {x, 0, {0, 0, 5, 1}}, {y, 0, {0, 0, 4, 1}}, false),
               Error);
  EXPECT_THROW(copy_strided(bench.stream, {1, 1, 1, 5}, {x, 6, {0, 0, 0, 1}}, {y, 0, {0, 0, 0, 1}}, false),
               Error);
}

TEST(MergeAttention, EqualsAttentionOverAllKeys) {
  constexpr double kTolerance = 1e-13;
  Workbench bench;
  const std::int64_t samples = 2, queries = 9, keys = 14, heads = 3, width = 5, cut = 6;
  const Tensor q = bench.random({samples, queries, heads, width}, 1);
  const auto part_keys = [&](std::uint64_t key, std::int64_t begin, std::int64_t end) {
    const Numbers all = draw(key, samples * keys * heads * width);
    Numbers part;
    const std::int64_t row = heads * width;
    for (std::int64_t b = 0; b < samples; ++b)
      for (std::int64_t i = (b * keys + begin) * row; i < (b * keys + end) * row; ++i)
        part.push_back(all[static_cast<std::size_t>(i)]);
    return bench.tensor({samples, end - begin, heads, width}, part);
  };
  struct Part {
    Tensor o, log_sum_exp;
  };
  const auto attend = [&](std::int64_t begin, std::int64_t end) {
    Part part{Tensor::empty(q.shape(), DType::kF64, bench.stream, Owner::kBuffers),
              Tensor::empty({samples, heads, queries}, DType::kF64, bench.stream, Owner::kBuffers)};
    // Causal, with the queries at positions 5 to 13: the first see no key of the second part.
    kernels::attention_forward(bench.stream, q, part_keys(2, begin, end), part_keys(3, begin, end),
                               {true, 0, 5, begin}, {}, part.o, part.log_sum_exp);
    return part;
  };
  const Part whole = attend(0, keys);
  for (bool second_first : {false, true}) {
    const Part into = second_first ? attend(cut, keys) : attend(0, cut),
               other = second_first ? attend(0, cut) : attend(cut, keys);
    EXPECT_EQ(numbers(attend(cut, keys).log_sum_exp)[0], -std::numeric_limits<double>::infinity());
    kernels::merge_attention(bench.stream, other.o, other.log_sum_exp, into.o, into.log_sum_exp);
    expect_near(numbers(into.o), numbers(whole.o), kTolerance);
    expect_near(numbers(into.log_sum_exp), numbers(whole.log_sum_exp), kTolerance);
  }
}

}  // namespace
}  // namespace dew::test
