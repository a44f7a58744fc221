// The decoder family. T = B L tokens here, D width, V vocabulary.
#include <cmath>
#include <numeric>
#include <utility>

#include "autograd/embedding.h"
#include "autograd/loss.h"
#include "autograd/norm.h"
#include "autograd/tokens.h"
#include "base/text.h"
#include "model/families/decoder_config.h"
#include "model/families/families.h"
#include "model/parts/attention.h"
#include "model/parts/mlp.h"
#include "model/registry.h"

namespace dew {
namespace {

/// One integer a token, [B, L], as [T], the same on every rank that shares the tokens.
Var each_token(const Tensor& values, const Microbatch& microbatch) {
  return {values.range(0, values.numel()), microbatch.placements, -1};
}

class EmbedBlock final : public Block {
 public:
  explicit EmbedBlock(ParamSpec table) : params_{std::move(table)} {}
  const std::string& name() const override { return name_; }
  std::span<const ParamSpec> params() const override { return params_; }
  Vars forward(Scope& scope, const Microbatch& microbatch, const Vars&) const override {
    const Var all = each_token(microbatch.batch.tokens, microbatch);
    if (!scope.tape.split_of(kTable, 0).empty())
      return {own_tokens(scope, embedding(scope.tape, all.value, all.placements, kTable))};
    const Var own = own_tokens(scope, all);
    return {embedding(scope.tape, own.value, own.placements, kTable)};
  }

 private:
  static constexpr ParamRef kTable{0};
  std::string name_ = "embed";
  std::vector<ParamSpec> params_;
};

class LayerBlock final : public Block {
 public:
  LayerBlock(std::string name, const AttentionConfig& attention, const MlpConfig& mlp)
      : name_(std::move(name)), attention_(attention, 0), mlp_(mlp, AttentionPart::kParamCount) {
    params_ = attention_.params(name_ + ".attention");
    for (ParamSpec& spec : mlp_.params(name_ + ".mlp")) params_.push_back(std::move(spec));
  }
  const std::string& name() const override { return name_; }
  std::span<const ParamSpec> params() const override { return params_; }
  Vars forward(Scope& scope, const Microbatch& microbatch, const Vars& in) const override {
    return {mlp_.forward(scope, microbatch, attention_.forward(scope, microbatch, in[0]))};
  }

 private:
  std::string name_;
  AttentionPart attention_;
  MlpPart mlp_;
  std::vector<ParamSpec> params_;
};

class HeadBlock final : public Block {
 public:
  HeadBlock(ParamSpec norm, ParamSpec weight, double norm_eps, std::int64_t chunk)
      : params_{std::move(norm), std::move(weight)}, norm_eps_(norm_eps), chunk_(chunk) {}
  const std::string& name() const override { return name_; }
  std::span<const ParamSpec> params() const override { return params_; }
  Vars forward(Scope& scope, const Microbatch& microbatch, const Vars& in) const override {
    Var h = rms_norm(scope.tape, in[0], kNorm, norm_eps_);
    Var targets = each_token(microbatch.batch.targets, microbatch);
    if (scope.tape.split_of(kWeight, 0).empty())
      targets = own_tokens(scope, targets);
    else
      h = whole_tokens(scope, h, targets.value.numel());
    return {head_loss(scope, h, kWeight, targets.value, microbatch.loss_scale, chunk_)};
  }
  bool may_rerun() const override { return false; }

 private:
  static constexpr ParamRef kNorm{0}, kWeight{1};
  std::string name_ = "head";
  std::vector<ParamSpec> params_;
  double norm_eps_;
  std::int64_t chunk_;
};

std::string summary_of(const DecoderConfig& c) {
  return format("decoder, %lld layers x %lld, %lld heads (%lld kv) x %lld, mlp %lld, vocab %lld, %s head",
                static_cast<long long>(c.layers), static_cast<long long>(c.width),
                static_cast<long long>(c.heads), static_cast<long long>(c.kv_heads),
                static_cast<long long>(c.head_width), static_cast<long long>(c.mlp),
                static_cast<long long>(c.vocab), c.tied ? "tied" : "separate");
}

}  // namespace

Model build_decoder(ConfigSection section, const ModelContext& context) {
  const DecoderConfig c = read_decoder_config(std::move(section), context);
  Model model;
  model.family = "decoder";
  model.remat_sites = {"attention", "qkv", "mlp", "mlp_hidden"};
  if (!c.valid) return model;
  model.summary = summary_of(c);
  const double out_std =
      c.init_residual ? c.init_std / std::sqrt(2.0 * static_cast<double>(c.layers)) : c.init_std;
  const ParamSpec table{"embed.weight",
                        {c.vocab, c.width},
                        {LogicalAxis::kVocab, LogicalAxis::kWidth},
                        Init::normal(c.init_std)};
  ParamSpec head = table;
  if (!c.tied) head.name = "head.weight";
  model.chain.push_back(std::make_unique<EmbedBlock>(table));
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const AttentionConfig attention{c.width,        c.heads,    c.kv_heads, c.head_width, c.rope_theta,
                                    c.window_of(i), c.norm_eps, c.init_std, out_std};
    const MlpConfig mlp{c.width, c.mlp, c.norm_eps, c.init_std, out_std};
    model.chain.push_back(std::make_unique<LayerBlock>("layers." + std::to_string(i), attention, mlp));
  }
  ParamSpec norm{"head.norm", {c.width}, {LogicalAxis::kWidth}, Init::ones()};
  model.chain.push_back(
      std::make_unique<HeadBlock>(std::move(norm), std::move(head), c.norm_eps, c.head_chunk));
  return model;
}

}  // namespace dew
