// Runs the attention kernels on plain numbers, for their tests.
#pragma once

#include <cstdint>
#include <vector>

#include "attention_reference.h"
#include "base/philox.h"

namespace dew::test {

inline Values uniform(std::int64_t n, std::uint64_t key) {
  Values values(n);
  for (std::int64_t i = 0; i < n; ++i) values[i] = philox(key, i, 0)[0] * 0x1p-31 - 1;
  return values;
}

/// Numbers in [-1, 1) that f32 holds exactly.
inline AttentionInputs inputs_of(const AttentionCase& c) {
  AttentionInputs in{uniform(c.queries(), 1), uniform(c.keys(), 2), uniform(c.keys(), 3),
                     uniform(c.queries(), 4)};
  for (Values* values : {&in.q, &in.k, &in.v, &in.d_o})
    for (double& x : *values) x = static_cast<float>(x);
  return in;
}

class OnCpu {
 public:
  template <class T>
  Tensor tensor(const Shape& shape, const Values& values) {
    Tensor made = Tensor::empty(shape, dtype_of<T>(), stream, Owner::kActivations);
    for (std::size_t i = 0; i < values.size(); ++i) made.data<T>()[i] = static_cast<T>(values[i]);
    return made;
  }

  Allocator allocator{Device{}};
  Stream stream{allocator};
};

template <class T>
Values values_of(const Tensor& tensor) {
  Values values;
  for (std::int64_t i = 0; i < tensor.numel(); ++i)
    values.push_back(static_cast<double>(static_cast<Real<T>>(tensor.data<T>()[i])));
  return values;
}

/// Forward and backward by the kernels. Gradients start as `start` and are added to when `accumulate`.
template <class T>
AttentionResults run(const AttentionCase& c, const AttentionInputs& in, bool accumulate = false,
                     double start = 7, const kernels::AttentionDropout& dropout = {}) {
  OnCpu cpu;
  kernels::AttentionMask mask = c.mask;
  if (!c.starts.empty()) {
    mask.starts = Tensor::empty({c.b, static_cast<std::int64_t>(c.starts.size()) / c.b}, DType::kI32,
                                cpu.stream, Owner::kBuffers);
    std::copy(c.starts.begin(), c.starts.end(), mask.starts.data<std::int32_t>());
  }
  const Shape query_shape{c.b, c.l, c.h, c.k}, key_shape{c.b, c.s, c.g, c.k};
  const Tensor q = cpu.tensor<T>(query_shape, in.q), k = cpu.tensor<T>(key_shape, in.k);
  const Tensor v = cpu.tensor<T>(key_shape, in.v), d_o = cpu.tensor<T>(query_shape, in.d_o);
  const Tensor o = cpu.tensor<T>(query_shape, Values(c.queries(), start));
  const Tensor lse = cpu.tensor<Real<T>>({c.b, c.h, c.l}, Values(c.rows(), start));
  const kernels::Target dq{cpu.tensor<T>(query_shape, Values(c.queries(), start)), accumulate};
  const kernels::Target dk{cpu.tensor<T>(key_shape, Values(c.keys(), start)), accumulate};
  const kernels::Target dv{cpu.tensor<T>(key_shape, Values(c.keys(), start)), accumulate};
  kernels::attention_forward(cpu.stream, q, k, v, mask, dropout, o, lse);
  kernels::attention_backward(cpu.stream, q, k, v, mask, dropout, o, lse, d_o, dq, dk, dv);
  return {values_of<T>(o), values_of<Real<T>>(lse), values_of<T>(dq.into), values_of<T>(dk.into),
          values_of<T>(dv.into)};
}

}  // namespace dew::test
