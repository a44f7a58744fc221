#include "model/parts/attention.h"

#include "autograd/attention.h"
#include "autograd/linear.h"
#include "autograd/norm.h"
#include "autograd/pointwise.h"
#include "autograd/remat.h"

namespace dew {

std::vector<ParamSpec> AttentionPart::params(const std::string& prefix) const {
  const auto& c = config_;
  const std::int64_t q = c.heads * c.head_width, kv = c.kv_heads * c.head_width;
  const Init in = Init::normal(c.init_std), out = Init::normal(c.out_init_std);
  return {{prefix + ".norm", {c.width}, {LogicalAxis::kWidth}, Init::ones()},
          {prefix + ".wq", {q, c.width}, {LogicalAxis::kHeads, LogicalAxis::kWidth}, in},
          {prefix + ".wk", {kv, c.width}, {LogicalAxis::kKvHeads, LogicalAxis::kWidth}, in},
          {prefix + ".wv", {kv, c.width}, {LogicalAxis::kKvHeads, LogicalAxis::kWidth}, in},
          {prefix + ".wo", {c.width, q}, {LogicalAxis::kWidth, LogicalAxis::kHeads}, out}};
}

Var AttentionPart::forward(Scope& scope, const Microbatch& microbatch, const Var& x) const {
  const AttentionConfig c = config_;
  const std::int64_t samples = microbatch.batch.tokens.dim(0), length = microbatch.batch.tokens.dim(1);
  const std::int64_t begin = microbatch.batch.first_position;
  const ParamRef norm{first_}, wq{first_ + 1}, wk{first_ + 2}, wv{first_ + 3}, wo{first_ + 4};
  const Tensor table =
      scope.rope_tables.get(scope.tape.stream(), begin, length, c.head_width, c.rope_theta, x.value.dtype());

  const Body project = [c, samples, length, norm, wq, wk, wv, table](Scope& s, const Vars& in) -> Vars {
    const Var h = rms_norm(s.tape, in[0], norm, c.norm_eps);
    const Shape q_heads{samples, length, c.heads, c.head_width},
        kv_heads{samples, length, c.kv_heads, c.head_width};
    return {rope(s.tape, reshape(s.tape, linear(s.tape, h, wq), q_heads), table),
            rope(s.tape, reshape(s.tape, linear(s.tape, h, wk), kv_heads), table),
            reshape(s.tape, linear(s.tape, h, wv), kv_heads)};
  };
  const Body whole = [c, samples, length, begin, wo, project](Scope& s, const Vars& in) -> Vars {
    const Vars qkv = remat(s, "qkv", in, project);
    const kernels::AttentionMask mask{true, c.window, begin, begin};
    const Var o = attention(s.tape, qkv[0], qkv[1], qkv[2], mask);
    return {linear(s.tape, reshape(s.tape, o, {samples * length, c.heads * c.head_width}), wo)};
  };
  return add(scope.tape, x, remat(scope, "attention", {x}, whole)[0]);
}

}  // namespace dew
