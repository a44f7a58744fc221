#include "model/parts/maps.h"

#include <utility>

#include "autograd/dropout.h"
#include "autograd/linear.h"
#include "autograd/pointwise.h"
#include "autograd/tokens.h"
#include "base/philox.h"

namespace dew {
namespace {

ParamRef append(ParamSpec spec, std::vector<ParamSpec>& params) {
  params.push_back(std::move(spec));
  return {static_cast<int>(params.size()) - 1};
}

}  // namespace

NormPart::NormPart(const NormConfig& config, const std::string& name, DimMeaning meaning, std::int64_t width,
                   std::vector<ParamSpec>& params)
    : config_(config), weight_(append({name, {width}, {meaning}, Init::ones()}, params)) {
  if (config.layer && config.bias)
    bias_ = append({name + "_bias", {width}, {meaning}, Init::zeros()}, params);
}

Var NormPart::forward(Tape& tape, const Var& x) const {
  return config_.layer ? layer_norm(tape, x, weight_, bias_, config_.eps)
                       : rms_norm(tape, x, weight_, config_.eps);
}

Var LinearMap::forward(Tape& tape, const Var& x) const {
  const Var y = linear(tape, x, weight);
  return bias ? add_bias(tape, y, *bias) : y;
}

LinearMap add_map(ParamSpec weight, const std::string& bias_name, std::vector<ParamSpec>& params) {
  const std::int64_t out = weight.shape.dim(0);
  const DimMeaning meaning = weight.axes.front();
  LinearMap map{append(std::move(weight), params), {}};
  if (!bias_name.empty()) map.bias = append({bias_name, {out}, {meaning}, Init::zeros()}, params);
  return map;
}

kernels::Dropout draws_of(const Microbatch& microbatch, const std::string& site, double rate) {
  if (!microbatch.draws || rate == 0) return {};
  return {stream_key(*microbatch.draws, site), rate};
}

Var dropped(Scope& scope, const Microbatch& microbatch, const ResidualDropout& dropout, const Var& x) {
  const Batch& batch = microbatch.batch;
  const kernels::TokenPlaces places{own_rows(scope.mesh, batch.tokens.numel()).begin,
                                    std::max<std::int64_t>(batch.tokens.dim(1), 1), batch.first_row,
                                    batch.first_position};
  return dew::dropout(scope.tape, x, draws_of(microbatch, dropout.site, dropout.rate), places);
}

Var into_residual(Scope& scope, const Microbatch& microbatch, const ResidualDropout& dropout, bool gathered,
                  std::optional<ParamRef> bias, const Var& x, const Var& y) {
  Var own = gathered ? own_tokens(scope, y) : y;
  if (bias) own = add_bias(scope.tape, own, *bias);
  return add(scope.tape, x, dropped(scope, microbatch, dropout, own));
}

}  // namespace dew
