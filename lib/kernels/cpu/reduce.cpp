#include "kernels/cpu/reduce.h"

#include <vector>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd/table.h"

namespace dew::kernels::cpu {

namespace {

// Elements of one partial sum: a fixed size, since it settles the order of the sum.
constexpr std::int64_t kSumChunk = 16384;

// Unsigned, so that a sum past the range wraps.
void sum_words(std::span<const Tensor> terms, const Tensor& y, bool accumulate) {
  std::uint64_t* out = reinterpret_cast<std::uint64_t*>(y.data<std::int64_t>());
  parallel_flat(y.numel(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      std::uint64_t sum = accumulate ? out[i] : 0;
      for (const Tensor& term : terms)
        sum += static_cast<std::uint64_t>(static_cast<const std::int64_t*>(term.raw())[i]);
      out[i] = sum;
    }
  });
}

}  // namespace

void sum_of_squares(const Tensor& x, double& sum) {
  const std::int64_t n = x.numel(), chunks = (n + kSumChunk - 1) / kSumChunk;
  std::vector<double> partial(static_cast<std::size_t>(chunks));
  visit_float(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* in = x.data<T>();
    const auto& ops = real_ops<T>();
    parallel_rows(chunks, kSumChunk, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t c = begin; c < end; ++c)
        partial[static_cast<std::size_t>(c)] =
            ops.sum_of_squares(in + c * kSumChunk, std::min(kSumChunk, n - c * kSumChunk));
    });
  });
  sum = 0;
  for (double part : partial) sum += part;
}

void sum_in_order(std::span<const Tensor> terms, const Tensor& y, bool accumulate) {
  if (y.dtype() == DType::kI64) {
    sum_words(terms, y, accumulate);
    return;
  }
  visit_compute(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    std::vector<const T*> in;
    for (const Tensor& term : terms) in.push_back(term.data<T>());
    T* out = y.data<T>();
    const auto& ops = simd_ops<T>();
    parallel_flat(y.numel(), [&](std::int64_t begin, std::int64_t end) {
      ops.sum_in_order(in.data(), static_cast<std::int64_t>(in.size()), out, accumulate, begin, end);
    });
  });
}

}  // namespace dew::kernels::cpu
