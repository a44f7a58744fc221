#include "kernels/heads.h"

#include "host.h"

namespace dew::test {
namespace {

using Heads = std::vector<std::int64_t>;
const Heads kLists[] = {{0}, {2, 2, 0, 1}, {1, 1, 1, 1, 1}, {}};

TEST(SelectHeads, TakesTheHeadsOfTheList) {
  Host host;
  for (DType dtype : kStored) {
    for (const Heads& list : kLists) {
      for (std::int64_t width : {1, 3, 33}) {
        const auto chosen = static_cast<std::int64_t>(list.size());
        const Tensor x = host.random({2, 5, 3, width}, dtype, 1),
                     y = host.empty({2, 5, chosen, width}, dtype);

        kernels::select_heads(host.stream, x, list, y);

        const std::vector<double> from = values(x), to = values(y);
        for (std::int64_t t = 0; t < 10; ++t)
          for (std::int64_t i = 0; i < chosen; ++i)
            for (std::int64_t k = 0; k < width; ++k)
              ASSERT_EQ(
                  to[static_cast<std::size_t>((t * chosen + i) * width + k)],
                  from[static_cast<std::size_t>((t * 3 + list[static_cast<std::size_t>(i)]) * width + k)]);
      }
    }
  }
}

TEST(SelectHeads, AddsBackWhereAHeadWasTaken) {
  Host host;
  for (DType dtype : kStored) {
    for (const Heads& list : kLists) {
      for (bool accumulate : {false, true}) {
        const auto chosen = static_cast<std::int64_t>(list.size());
        const Tensor dy = host.random({2, 5, chosen, 33}, dtype, 1),
                     dx = host.random({2, 5, 3, 33}, dtype, 2);
        const std::vector<double> in = values(dy);
        std::vector<double> sum = accumulate ? values(dx) : std::vector<double>(2 * 5 * 3 * 33, 0.0);
        for (std::int64_t t = 0; t < 10; ++t)
          for (std::int64_t i = 0; i < chosen; ++i)
            for (std::int64_t k = 0; k < 33; ++k) {
              double& s = sum[static_cast<std::size_t>((t * 3 + list[static_cast<std::size_t>(i)]) * 33 + k)];
              s += in[static_cast<std::size_t>((t * chosen + i) * 33 + k)];
              if (dtype != DType::kF64) s = static_cast<double>(static_cast<float>(s));
              if (dtype == DType::kBf16) s = static_cast<double>(bf16(s));
            }

        kernels::select_heads_backward(host.stream, dy, list, {dx, accumulate});

        EXPECT_EQ(values(dx), sum);  // the same additions in the same order
      }
    }
  }
}

TEST(SelectHeads, RefusesHeadsThatAreNotThere) {
  Host host;
  const Tensor x = host.random({1, 2, 3, 4}, DType::kF32, 1), y = host.empty({1, 2, 1, 4}, DType::kF32);
  for (std::int64_t head : {-1, 3}) {
    EXPECT_THROW(kernels::select_heads(host.stream, x, Heads{head}, y), Error);
    EXPECT_THROW(kernels::select_heads_backward(host.stream, y, Heads{head}, {x, true}), Error);
  }
  EXPECT_THROW(kernels::select_heads(host.stream, x, Heads{0, 1}, y), Error);
}

TEST(SelectHeads, ThreadsDoNotChangeBits) {
  Host host;
  const Tensor x = host.random({3, 101, 4, 65}, DType::kF32, 1),
               dy = host.random({3, 101, 3, 65}, DType::kF32, 2);
  expect_threads_do_not_matter([&] {
    const Tensor y = host.empty({3, 101, 3, 65}, DType::kF32), dx = host.empty({3, 101, 4, 65}, DType::kF32);
    kernels::select_heads(host.stream, x, Heads{3, 0, 3}, y);
    kernels::select_heads_backward(host.stream, dy, Heads{3, 0, 3}, {dx, false});
    return std::vector<Tensor>{y, dx};
  });
}

}  // namespace
}  // namespace dew::test
