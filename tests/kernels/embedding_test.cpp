#include "kernels/embedding.h"

#include <limits>

#include "host.h"

namespace dew::test {
namespace {

const std::vector<std::int32_t> kTokens{2, 0, 2, 4, 2, 0};

TEST(Embedding, ForwardTakesRows) {
  Host host;
  for (DType dtype : kStored) {
    for (std::int64_t d : {1, 3, 33, 257}) {
      const Tensor table = host.random({5, d}, dtype, 1), y = host.empty({2, 3, d}, dtype);
      kernels::embedding_forward(host.stream, host.ints(kTokens), table, y);
      for (std::int64_t t = 0; t < 6; ++t) {
        const std::int64_t row = kTokens[static_cast<std::size_t>(t)];
        EXPECT_TRUE(same_bits(y.range(t * d, (t + 1) * d), table.rows(row, row + 1)));
      }
    }
  }
}

TEST(Embedding, BackwardAddsRowsInTokenOrder) {
  Host host;
  for (bool accumulate : {false, true}) {
    for (auto [from, to] :
         {std::pair{DType::kF32, DType::kF32}, {DType::kF32, DType::kF64}, {DType::kF64, DType::kF64}}) {
      for (std::int64_t d : {1, 3, 33, 257}) {
        const Tensor dy = host.random({6, d}, from, 1), d_table = host.random({5, d}, to, 2);
        const std::vector<double> in = values(dy);
        std::vector<double> sum =
            accumulate ? values(d_table) : std::vector<double>(static_cast<std::size_t>(5 * d));
        const bool narrow = to == DType::kF32;
        for (std::size_t t = 0; t < 6; ++t)
          for (std::size_t j = 0; j < static_cast<std::size_t>(d); ++j) {
            double& s = sum[static_cast<std::size_t>(kTokens[t] * d) + j];
            s += in[t * static_cast<std::size_t>(d) + j];
            if (narrow) s = static_cast<double>(static_cast<float>(s));
          }

        kernels::embedding_backward(host.stream, host.ints(kTokens), dy, {d_table, accumulate});

        EXPECT_EQ(values(d_table), sum);  // the same additions in the same order
      }
    }
  }
}

TEST(Embedding, PartsOfTheRowsAddUpToTheWhole) {
  Host host;
  for (DType dtype : kStored) {
    const Tensor table = host.random({5, 33}, dtype, 1), whole = host.empty({6, 33}, dtype),
                 dy = host.random({6, 33}, dtype, 2), d_whole = host.random({5, 33}, real_of(dtype), 3);
    kernels::embedding_forward(host.stream, host.ints(kTokens), table, whole);
    std::vector<double> sum(6 * 33, 0.0);
    const Tensor d_parts = host.clone(d_whole);
    kernels::embedding_backward(host.stream, host.ints(kTokens), dy, {d_whole, true});
    for (auto [begin, end] : {std::pair{0, 2}, {2, 2}, {2, 4}, {4, 5}}) {
      const kernels::VocabPart part{begin, 5};
      const Tensor y = host.random({6, 33}, dtype, 4);
      kernels::embedding_forward(host.stream, host.ints(kTokens), table.rows(begin, end), part, y);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values(y)[i];
      kernels::embedding_backward(host.stream, host.ints(kTokens), dy, part,
                                  {d_parts.rows(begin, end), true});
    }
    EXPECT_EQ(sum, values(whole)) << "zeros beside one row a token";
    EXPECT_TRUE(same_bits(d_parts, d_whole));
  }
}

TEST(Embedding, RefusesTokensOutsideAllParts) {
  Host host;
  const Tensor rows = host.random({2, 3}, DType::kF32, 1), y = host.random({1, 3}, DType::kF32, 1);
  for (std::int32_t token : {-1, 5}) {
    EXPECT_THROW(kernels::embedding_forward(host.stream, host.ints({token}), rows, {1, 5}, y), Error);
    EXPECT_THROW(kernels::embedding_backward(host.stream, host.ints({token}), y, {1, 5}, {rows, true}),
                 Error);
  }
  EXPECT_THROW(kernels::embedding_forward(host.stream, host.ints({1}), rows, {4, 5}, y), Error);
}

TEST(Embedding, NanComesThrough) {
  Host host;
  const Tensor dy = host.random({6, 3}, DType::kF32, 1), d_table = host.empty({5, 3}, DType::kF32);
  dy.data<float>()[4 * 3 + 1] = std::numeric_limits<float>::quiet_NaN();
  kernels::embedding_backward(host.stream, host.ints(kTokens), dy, {d_table, false});
  for (std::size_t i = 0; i < 15; ++i) EXPECT_EQ(std::isnan(values(d_table)[i]), i == 2 * 3 + 1);
}

TEST(Embedding, RefusesTokensOutsideTheTable) {
  Host host;
  const Tensor table = host.random({5, 3}, DType::kF32, 1), y = host.random({1, 3}, DType::kF32, 1);
  for (std::int32_t token : {-1, 5}) {
    EXPECT_THROW(kernels::embedding_forward(host.stream, host.ints({token}), table, y), Error);
    EXPECT_THROW(kernels::embedding_backward(host.stream, host.ints({token}), y, {table, true}), Error);
  }
}

TEST(Embedding, ThreadsDoNotChangeBits) {
  Host host;
  std::vector<std::int32_t> tokens;
  for (std::int32_t t = 0; t < 501; ++t) tokens.push_back(t * t % 7);
  const Tensor ids = host.ints(tokens), dy = host.random({501, 257}, DType::kF32, 1);
  const Tensor table = host.random({7, 257}, DType::kF32, 2);
  expect_threads_do_not_matter([&] {
    const Tensor d_table = host.empty({7, 257}, DType::kF32), wide = host.empty({7, 257}, DType::kF64);
    const Tensor y = host.empty({501, 257}, DType::kF32);
    kernels::embedding_backward(host.stream, ids, dy, {d_table, false});
    kernels::embedding_backward(host.stream, ids, dy, {wide, false});
    kernels::embedding_forward(host.stream, ids, table, y);
    return std::vector<Tensor>{d_table, wide, y};
  });
}

}  // namespace
}  // namespace dew::test
