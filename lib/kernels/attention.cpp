#include "kernels/attention.h"

#include <algorithm>

#include "kernels/cpu/attention.h"
#include "kernels/dispatch.h"
#include "kernels/progress.h"

namespace dew::kernels {
namespace {

AttentionShape checked_shape(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionMask& mask,
                             const AttentionDropout& dropout) {
  DEW_CHECK(q.shape().dims() == 4 && k.shape().dims() == 4, q.shape(), k.shape());
  DEW_CHECK(k.shape() == v.shape() && q.dim(0) == k.dim(0) && q.dim(3) == k.dim(3), q.shape(), k.shape(),
            v.shape());
  DEW_CHECK(q.dtype() == k.dtype() && q.dtype() == v.dtype(), name_of(q.dtype()), name_of(k.dtype()),
            name_of(v.dtype()));
  AttentionShape shape{.samples = q.dim(0),
                       .queries = q.dim(1),
                       .keys = k.dim(1),
                       .heads = q.dim(2),
                       .kv_heads = k.dim(2),
                       .width = q.dim(3),
                       .mask = mask,
                       .dropout = dropout};
  DEW_CHECK(shape.kv_heads > 0 && shape.heads % shape.kv_heads == 0, shape.heads, shape.kv_heads);
  DEW_CHECK(shape.width > 0, q.shape());
  DEW_CHECK(mask.window >= 0 && (mask.window == 0 || mask.causal), mask.window, mask.causal);
  if (mask.starts.defined()) {
    const Tensor& starts = mask.starts;
    DEW_CHECK(mask.causal && starts.dtype() == DType::kI32 && starts.shape().dims() == 2, starts.shape());
    DEW_CHECK(starts.dim(0) == shape.samples && mask.query_begin >= 0 &&
                  mask.query_begin + shape.queries <= starts.dim(1),
              starts.shape(), q.shape(), mask.query_begin);
  }
  return shape;
}

void check_results(const AttentionShape& shape, const Tensor& q, const Tensor& o, const Tensor& log_sum_exp) {
  DEW_CHECK(o.shape() == q.shape() && o.dtype() == q.dtype(), o.shape(), q.shape(), name_of(o.dtype()));
  DEW_CHECK(log_sum_exp.shape() == Shape({shape.samples, shape.heads, shape.queries}) &&
                log_sum_exp.dtype() == real_of(q.dtype()),
            log_sum_exp.shape(), q.shape(), name_of(log_sum_exp.dtype()));
}

void check_gradient(const Target& gradient, const Tensor& of) {
  DEW_CHECK(gradient.into.shape() == of.shape() && gradient.into.dtype() == of.dtype(), gradient.into.shape(),
            of.shape(), name_of(gradient.into.dtype()));
}

/// The sum over i in [0, count) of first + i, each clamped to [0, most].
double clamped_sum(std::int64_t first, std::int64_t count, std::int64_t most) {
  const std::int64_t low = std::clamp<std::int64_t>(-first, 0, count),
                     high = std::clamp<std::int64_t>(most - first, low, count);
  const double terms = static_cast<double>(high - low), start = static_cast<double>(first + low);
  return terms * start + terms * (terms - 1) / 2 +
         static_cast<double>(count - high) * static_cast<double>(most);
}

/// Pairs of a query and a key that it sees, documents left aside.
double visible_pairs(const AttentionShape& shape) {
  const AttentionMask& mask = shape.mask;
  if (!mask.causal) return static_cast<double>(shape.queries) * static_cast<double>(shape.keys);
  const std::int64_t shift = mask.query_begin - mask.key_begin;
  const double before = clamped_sum(shift + 1, shape.queries, shape.keys);
  if (mask.window == 0) return before;
  return before - clamped_sum(shift + 1 - mask.window, shape.queries, shape.keys);
}

/// FLOP of one matrix product over every visible pair of a query and a key, documents left aside.
double product_flops(const AttentionShape& shape) {
  return 2.0 * visible_pairs(shape) * static_cast<double>(shape.samples * shape.heads * shape.width);
}

std::size_t gradient_bytes(const Target& gradient) {
  return gradient.into.bytes() * (gradient.accumulate ? 2 : 1);
}

}  // namespace

KeyRange visible_keys(const AttentionShape& shape, std::int64_t query_begin, std::int64_t query_end) {
  const AttentionMask& mask = shape.mask;
  if (!mask.causal) return {0, shape.keys};
  const std::int64_t shift = mask.query_begin - mask.key_begin;  // the key that stands where query 0 does
  const std::int64_t end = std::clamp<std::int64_t>(shift + query_end, 0, shape.keys);
  if (mask.window == 0) return {0, end};
  return {std::clamp<std::int64_t>(shift + query_begin - mask.window + 1, 0, end), end};
}

void attention_forward(Stream& stream, const Tensor& q, const Tensor& k, const Tensor& v,
                       const AttentionMask& mask, const AttentionDropout& dropout, const Tensor& o,
                       const Tensor& log_sum_exp) {
  const AttentionShape shape = checked_shape(q, k, v, mask, dropout);
  check_results(shape, q, o, log_sum_exp);
  const double flops = 2 * product_flops(shape);
  progress_before(stream, flops);
  const Tensor scratch = Tensor::empty(Shape{cpu::attention_forward_scratch(shape, q.dtype())},
                                       real_of(q.dtype()), stream, Owner::kBuffers);
  const KernelScope scope(stream, KernelKind::kAttention, flops,
                          static_cast<double>(2 * q.bytes() + 2 * k.bytes() + log_sum_exp.bytes()));
  DEW_DISPATCH(stream, attention_forward(shape, q, k, v, o, log_sum_exp, scratch));
}

void attention_backward(Stream& stream, const Tensor& q, const Tensor& k, const Tensor& v,
                        const AttentionMask& mask, const AttentionDropout& dropout, const Tensor& o,
                        const Tensor& log_sum_exp, const Tensor& d_o, const Target& dq, const Target& dk,
                        const Target& dv) {
  const AttentionShape shape = checked_shape(q, k, v, mask, dropout);
  check_results(shape, q, o, log_sum_exp);
  DEW_CHECK(d_o.shape() == q.shape() && d_o.dtype() == q.dtype(), d_o.shape(), q.shape(),
            name_of(d_o.dtype()));
  check_gradient(dq, q);
  check_gradient(dk, k);
  check_gradient(dv, v);
  const double flops = 5 * product_flops(shape);
  progress_before(stream, flops);
  const Tensor scratch = Tensor::empty(Shape{cpu::attention_backward_scratch(shape, q.dtype())},
                                       real_of(q.dtype()), stream, Owner::kBuffers);
  const std::size_t moved = 3 * q.bytes() + 2 * k.bytes() + log_sum_exp.bytes() + gradient_bytes(dq) +
                            gradient_bytes(dk) + gradient_bytes(dv);
  const KernelScope scope(stream, KernelKind::kAttention, flops, static_cast<double>(moved));
  DEW_DISPATCH(stream, attention_backward(shape, {q, k, v, o, log_sum_exp, d_o}, dq, dk, dv, scratch));
}

}  // namespace dew::kernels
