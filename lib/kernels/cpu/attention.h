// Attention on the cores of one rank: blocks of queries against tiles of keys, all in the nearest caches.
// B samples, L queries, S keys, H query heads, G key/value heads, K head width.
#pragma once

#include <cstdint>

#include "kernels/attention.h"

namespace dew::kernels {

struct AttentionShape {
  std::int64_t samples = 0, queries = 0, keys = 0;
  std::int64_t heads = 0, kv_heads = 0, width = 0;
  AttentionMask mask;
  AttentionDropout dropout;
};

struct KeyRange {
  std::int64_t begin = 0, end = 0;
};

/// The smallest range that holds every key which one of the queries [query_begin, query_end) sees, documents
/// left aside.
KeyRange visible_keys(const AttentionShape& shape, std::int64_t query_begin, std::int64_t query_end);

}  // namespace dew::kernels

namespace dew::kernels::cpu {

/// Elements of scratch of one call, of the real type: for each thread some tiles, whatever L and S. The
/// backward adds copies of dq where samples and heads alone are too few to keep the threads busy, and of bf16
/// the f32 sums of dk and dv of a thread's task, which grow with S.
std::int64_t attention_forward_scratch(const AttentionShape& shape, DType dtype);
std::int64_t attention_backward_scratch(const AttentionShape& shape, DType dtype);

void attention_forward(const AttentionShape& shape, const Tensor& q, const Tensor& k, const Tensor& v,
                       const Tensor& o, const Tensor& log_sum_exp, const Tensor& scratch);

/// What the forward pass was given and gave, and the gradient of its result.
struct AttentionPass {
  const Tensor& q;
  const Tensor& k;
  const Tensor& v;
  const Tensor& o;
  const Tensor& log_sum_exp;
  const Tensor& d_o;
};

void attention_backward(const AttentionShape& shape, const AttentionPass& pass, const Target& dq,
                        const Target& dk, const Target& dv, const Tensor& scratch);

}  // namespace dew::kernels::cpu
