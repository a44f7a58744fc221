#include "model/parts/mlp.h"

#include "autograd/linear.h"
#include "autograd/pointwise.h"
#include "autograd/remat.h"
#include "autograd/tokens.h"

namespace dew {
namespace {

/// A map of the half: its weight's spec and the name of its bias.
LinearMap map_of(const MlpConfig& c, const std::string& name, bool out, std::vector<ParamSpec>& params) {
  const LogicalAxis rows = out ? LogicalAxis::kWidth : LogicalAxis::kMlp,
                    columns = out ? LogicalAxis::kMlp : LogicalAxis::kWidth;
  const Shape shape = out ? Shape{c.width, c.hidden} : Shape{c.hidden, c.width};
  return add_map({name, shape, {rows, columns}, Init::normal(out ? c.out_init_std : c.init_std)},
                 c.bias ? name + "_bias" : "", params);
}

}  // namespace

MlpPart::MlpPart(const MlpConfig& config, const std::string& prefix, std::vector<ParamSpec>& params)
    : activation_(config.activation),
      norm_(config.norm, prefix + ".norm", LogicalAxis::kWidth, config.width, params),
      gate_(config.activation == Activation::kSwiglu
                ? std::optional(map_of(config, prefix + ".gate", false, params))
                : std::nullopt),
      up_(map_of(config, prefix + ".up", false, params)),
      down_(map_of(config, prefix + ".down", true, params)),
      dropout_{config.dropout, prefix} {}

Var MlpPart::forward(Scope& scope, const Microbatch& microbatch, const Var& x) const {
  const std::int64_t tokens = microbatch.batch.tokens.numel();
  // With whole weights every rank serves its own tokens.
  const bool split = !scope.tape.split_of(up_.weight, 0).empty();
  const Body expand = [split, tokens, activation = activation_, norm = norm_, gate = gate_, up = up_](
                          Scope& s, const Vars& in) -> Vars {
    Var h = norm.forward(s.tape, in[0]);
    if (split) h = whole_tokens(s, h, tokens);
    if (gate) return {swiglu(s.tape, gate->forward(s.tape, h), up.forward(s.tape, h))};
    const bool exact = activation == Activation::kGelu;
    return {gelu(s.tape, up.forward(s.tape, h), exact ? kernels::Gelu::kExact : kernels::Gelu::kTanh)};
  };
  const Body whole = [down = down_.weight, expand](Scope& s, const Vars& in) -> Vars {
    return {linear(s.tape, remat(s, "mlp_hidden", in, expand)[0], down)};
  };
  return into_residual(scope, microbatch, dropout_, split, down_.bias, x, remat(scope, "mlp", {x}, whole)[0]);
}

}  // namespace dew
