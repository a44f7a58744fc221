#include "model/parts/attention.h"

#include <numeric>

#include "autograd/linear.h"
#include "autograd/norm.h"
#include "autograd/pointwise.h"
#include "autograd/remat.h"
#include "autograd/select_heads.h"
#include "autograd/sequence_attention.h"
#include "autograd/tokens.h"

namespace dew {
namespace {

/// x [T, N K] as [B, L, N, K].
Var as_heads(Tape& tape, const Var& x, const Tensor& tokens, std::int64_t head_width) {
  return reshape(tape, x, {tokens.dim(0), tokens.dim(1), x.value.dim(1) / head_width, head_width});
}

/// The key/value head of each run of query heads [begin, begin + count): runs are as long as every one of
/// them stays within a group of `group` query heads that share a key/value head, and equally long, as
/// attention needs.
std::vector<std::int64_t> kv_heads_of(std::int64_t begin, std::int64_t count, std::int64_t group) {
  const std::int64_t run = std::gcd(std::gcd(group, begin), count);
  std::vector<std::int64_t> heads;
  for (std::int64_t head = begin; head < begin + count; head += run) heads.push_back(head / group);
  return heads;
}

}  // namespace

std::vector<ParamSpec> AttentionPart::params(const std::string& prefix) const {
  const auto& c = config_;
  const std::int64_t q = c.heads * c.head_width, kv = c.kv_heads * c.head_width;
  const Init in = Init::normal(c.init_std), out = Init::normal(c.out_init_std);
  const DimMeaning width(LogicalAxis::kWidth), heads(LogicalAxis::kHeads, c.heads),
      kv_heads(LogicalAxis::kKvHeads, c.kv_heads);
  return {{prefix + ".norm", {c.width}, {width}, Init::ones()},
          {prefix + ".wq", {q, c.width}, {heads, width}, in},
          {prefix + ".wk", {kv, c.width}, {kv_heads, width}, in},
          {prefix + ".wv", {kv, c.width}, {kv_heads, width}, in},
          {prefix + ".wo", {c.width, q}, {width, heads}, out}};
}

Var AttentionPart::forward(Scope& scope, const Microbatch& microbatch, const Var& x) const {
  const AttentionConfig c = config_;
  const Tensor tokens = microbatch.batch.tokens;
  const std::int64_t begin = microbatch.batch.first_position;
  const ParamRef norm{first_}, wq{first_ + 1}, wk{first_ + 2}, wv{first_ + 3}, wo{first_ + 4};
  const Tensor table = scope.rope_tables.get(scope.tape.stream(), begin, tokens.dim(1), c.head_width,
                                             c.rope_theta, x.value.dtype());

  const Body project = [c, tokens, norm, wq, wk, wv, table](Scope& s, const Vars& in) -> Vars {
    const Var h = whole_tokens(s, rms_norm(s.tape, in[0], norm, c.norm_eps), tokens.numel());
    const auto heads_by = [&](ParamRef w) {
      return as_heads(s.tape, linear(s.tape, h, w), tokens, c.head_width);
    };
    const Var q = rope(s.tape, heads_by(wq), table);
    const Var k = rope(s.tape, heads_by(wk), table), v = heads_by(wv);
    const AxisSet split = s.tape.split_of(wq, 0);
    if (split == s.tape.split_of(wk, 0)) return {q, k, v};
    const std::vector<std::int64_t> list =
        kv_heads_of(s.tape.offset_of(wq, 0) / c.head_width, q.value.dim(2), c.heads / c.kv_heads);
    return {q, select_heads(s.tape, k, list, split), select_heads(s.tape, v, list, split)};
  };
  const Body whole = [c, tokens, begin, wo, project](Scope& s, const Vars& in) -> Vars {
    const Vars qkv = remat(s, "qkv", in, project);
    const kernels::AttentionMask mask{true, c.window, begin, begin};
    const Var o = sequence_attention(s, qkv[0], qkv[1], qkv[2], mask);
    return {linear(s.tape, reshape(s.tape, o, {tokens.numel(), o.value.dim(2) * c.head_width}), wo)};
  };
  return add(scope.tape, x, own_tokens(scope, remat(scope, "attention", {x}, whole)[0]));
}

}  // namespace dew
