#include "model/parts/attention.h"

#include <numeric>

#include "autograd/linear.h"
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

/// A map into heads.
LinearMap into_heads(const AttentionConfig& c, const std::string& prefix, const char* letter,
                     DimMeaning heads, std::vector<ParamSpec>& params) {
  return add_map({prefix + ".w" + letter,
                  {heads.units * c.head_width, c.width},
                  {heads, LogicalAxis::kWidth},
                  Init::normal(c.init_std)},
                 c.bias ? prefix + ".b" + letter : "", params);
}

std::optional<NormPart> head_norm(const AttentionConfig& c, const std::string& name,
                                  std::vector<ParamSpec>& params) {
  if (!c.qk_norm) return std::nullopt;
  return NormPart({false, false, c.norm.eps}, name, LogicalAxis::kHeadWidth, c.head_width, params);
}

}  // namespace

AttentionPart::AttentionPart(const AttentionConfig& config, const std::string& prefix,
                             std::vector<ParamSpec>& params)
    : config_(config),
      site_(prefix),
      norm_(config.norm, prefix + ".norm", LogicalAxis::kWidth, config.width, params),
      wq_(into_heads(config, prefix, "q", {LogicalAxis::kHeads, config.heads}, params)),
      wk_(into_heads(config, prefix, "k", {LogicalAxis::kKvHeads, config.kv_heads}, params)),
      wv_(into_heads(config, prefix, "v", {LogicalAxis::kKvHeads, config.kv_heads}, params)),
      wo_(add_map({prefix + ".wo",
                   {config.width, config.heads * config.head_width},
                   {LogicalAxis::kWidth, {LogicalAxis::kHeads, config.heads}},
                   Init::normal(config.out_init_std)},
                  config.bias ? prefix + ".bo" : "", params)),
      q_norm_(head_norm(config, prefix + ".q_norm", params)),
      k_norm_(head_norm(config, prefix + ".k_norm", params)) {}

Var AttentionPart::forward(Scope& scope, const Microbatch& microbatch, const Var& x) const {
  const AttentionPart part = *this;  // what the bodies below keep
  const AttentionConfig& c = config_;
  const Tensor tokens = microbatch.batch.tokens;
  const std::int64_t begin = microbatch.batch.first_position;
  // Positions that begin anew in documents take their rows of the table one by one.
  const Tensor starts = microbatch.batch.starts;
  const Tensor rows = starts.defined() ? microbatch.batch.positions : Tensor{};
  Tensor table;
  if (c.rope)
    table = scope.rope_tables.get(scope.tape.stream(), starts.defined() ? 0 : begin,
                                  starts.defined() ? starts.dim(1) : tokens.dim(1), c.head_width, *c.rope,
                                  x.value.dtype());

  const Body project = [part, tokens, table, rows](Scope& s, const Vars& in) -> Vars {
    const AttentionConfig& config = part.config_;
    const Var h = whole_tokens(s, part.norm_.forward(s.tape, in[0]), tokens.numel());
    const auto placed = [&](const LinearMap& map, const std::optional<NormPart>& norm) {
      Var heads = as_heads(s.tape, map.forward(s.tape, h), tokens, config.head_width);
      if (norm) heads = norm->forward(s.tape, heads);
      return table.defined() ? rope(s.tape, heads, table, rows) : heads;
    };
    const Var q = placed(part.wq_, part.q_norm_), k = placed(part.wk_, part.k_norm_);
    const Var v = as_heads(s.tape, part.wv_.forward(s.tape, h), tokens, config.head_width);
    const AxisSet split = s.tape.split_of(part.wq_.weight, 0);
    if (split == s.tape.split_of(part.wk_.weight, 0)) return {q, k, v};
    const std::vector<std::int64_t> list =
        kv_heads_of(s.tape.offset_of(part.wq_.weight, 0) / config.head_width, q.value.dim(2),
                    config.heads / config.kv_heads);
    return {q, select_heads(s.tape, k, list, split), select_heads(s.tape, v, list, split)};
  };
  const kernels::Dropout draw = draws_of(microbatch, site_ + ".weights", c.dropout);
  const std::int64_t first_row = microbatch.batch.first_row;
  const Body whole = [part, tokens, begin, starts, draw, first_row, project](Scope& s,
                                                                             const Vars& in) -> Vars {
    const Vars qkv = remat(s, "qkv", in, project);
    const kernels::AttentionMask mask{true, part.config_.window, begin, begin, starts};
    const std::int64_t first_head = s.tape.offset_of(part.wq_.weight, 0) / part.config_.head_width;
    const Var o = sequence_attention(s, qkv[0], qkv[1], qkv[2], mask, {draw, first_row, first_head});
    const Shape rows_of_heads{tokens.numel(), o.value.dim(2) * part.config_.head_width};
    return {linear(s.tape, reshape(s.tape, o, rows_of_heads), part.wo_.weight)};
  };
  return into_residual(scope, microbatch, {c.dropout, site_}, true, wo_.bias, x,
                       remat(scope, "attention", {x}, whole)[0]);
}

}  // namespace dew
