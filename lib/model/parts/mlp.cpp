#include "model/parts/mlp.h"

#include "autograd/linear.h"
#include "autograd/norm.h"
#include "autograd/pointwise.h"
#include "autograd/remat.h"
#include "autograd/tokens.h"

namespace dew {

std::vector<ParamSpec> MlpPart::params(const std::string& prefix) const {
  const auto& c = config_;
  const Init in = Init::normal(c.init_std), out = Init::normal(c.out_init_std);
  return {{prefix + ".norm", {c.width}, {LogicalAxis::kWidth}, Init::ones()},
          {prefix + ".gate", {c.hidden, c.width}, {LogicalAxis::kMlp, LogicalAxis::kWidth}, in},
          {prefix + ".up", {c.hidden, c.width}, {LogicalAxis::kMlp, LogicalAxis::kWidth}, in},
          {prefix + ".down", {c.width, c.hidden}, {LogicalAxis::kWidth, LogicalAxis::kMlp}, out}};
}

Var MlpPart::forward(Scope& scope, const Microbatch& microbatch, const Var& x) const {
  const double eps = config_.norm_eps;
  const ParamRef norm{first_}, gate{first_ + 1}, up{first_ + 2}, down{first_ + 3};
  const std::int64_t tokens = microbatch.batch.tokens.numel();
  // With whole weights every rank serves its own tokens.
  const bool split = !scope.tape.split_of(gate, 0).empty();
  const Body expand = [eps, split, tokens, norm, gate, up](Scope& s, const Vars& in) -> Vars {
    Var h = rms_norm(s.tape, in[0], norm, eps);
    if (split) h = whole_tokens(s, h, tokens);
    return {swiglu(s.tape, linear(s.tape, h, gate), linear(s.tape, h, up))};
  };
  const Body whole = [down, expand](Scope& s, const Vars& in) -> Vars {
    return {linear(s.tape, remat(s, "mlp_hidden", in, expand)[0], down)};
  };
  const Var y = remat(scope, "mlp", {x}, whole)[0];
  return add(scope.tape, x, split ? own_tokens(scope, y) : y);
}

}  // namespace dew
