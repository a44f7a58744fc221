// The decoder family. T = B L tokens here, D width, V vocabulary.
#include <cmath>
#include <optional>
#include <utility>

#include "autograd/embedding.h"
#include "autograd/loss.h"
#include "autograd/pointwise.h"
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
  /// `positions` [P, D] is learned; none where positions come from elsewhere.
  EmbedBlock(ParamSpec table, std::optional<ParamSpec> positions, double dropout)
      : params_{std::move(table)}, dropout_{dropout, "embed"} {
    if (positions) params_.push_back(std::move(*positions));
  }
  const std::string& name() const override { return name_; }
  std::span<const ParamSpec> params() const override { return params_; }
  Vars forward(Scope& scope, const Microbatch& microbatch, const Vars&) const override {
    const Var all = each_token(microbatch.batch.tokens, microbatch), own = own_tokens(scope, all);
    const bool split = !scope.tape.split_of(kTable, 0).empty();
    const Var& tokens = split ? all : own;
    Var x = embedding(scope.tape, tokens.value, tokens.placements, kTable);
    if (split) x = own_tokens(scope, x);
    if (params_.size() > 1) {
      const Var places = own_tokens(scope, each_token(microbatch.batch.positions, microbatch));
      x = add(scope.tape, x, embedding(scope.tape, places.value, places.placements, kPositions));
    }
    return {dropped(scope, microbatch, dropout_, x)};
  }

 private:
  static constexpr ParamRef kTable{0}, kPositions{1};
  std::string name_ = "embed";
  std::vector<ParamSpec> params_;
  ResidualDropout dropout_;
};

class LayerBlock final : public Block {
 public:
  LayerBlock(std::string name, const AttentionConfig& attention, const MlpConfig& mlp)
      : name_(std::move(name)),
        attention_(attention, name_ + ".attention", params_),
        mlp_(mlp, name_ + ".mlp", params_) {}
  const std::string& name() const override { return name_; }
  std::span<const ParamSpec> params() const override { return params_; }
  Vars forward(Scope& scope, const Microbatch& microbatch, const Vars& in) const override {
    return {mlp_.forward(scope, microbatch, attention_.forward(scope, microbatch, in[0]))};
  }

 private:
  std::string name_;
  std::vector<ParamSpec> params_;
  AttentionPart attention_;
  MlpPart mlp_;
};

class HeadBlock final : public Block {
 public:
  HeadBlock(const NormConfig& norm, ParamSpec weight, std::int64_t width, std::int64_t chunk)
      : norm_(norm, "head.norm", LogicalAxis::kWidth, width, params_), chunk_(chunk) {
    weight_ = {static_cast<int>(params_.size())};
    params_.push_back(std::move(weight));
  }
  const std::string& name() const override { return name_; }
  std::span<const ParamSpec> params() const override { return params_; }
  Vars forward(Scope& scope, const Microbatch& microbatch, const Vars& in) const override {
    Var h = norm_.forward(scope.tape, in[0]);
    Var targets = each_token(microbatch.batch.targets, microbatch);
    if (scope.tape.split_of(weight_, 0).empty())
      targets = own_tokens(scope, targets);
    else
      h = whole_tokens(scope, h, targets.value.numel());
    return {head_loss(scope, h, weight_, targets.value, microbatch.loss_scale, chunk_)};
  }
  bool may_rerun() const override { return false; }

 private:
  std::string name_ = "head";
  std::vector<ParamSpec> params_;
  NormPart norm_;
  ParamRef weight_;
  std::int64_t chunk_;
};

std::string summary_of(const DecoderConfig& c) {
  std::string extras;
  if (c.norm.layer) extras += ", LayerNorm";
  if (c.activation != Activation::kSwiglu) extras += ", GELU";
  if (!c.rope) extras += c.positions > 0 ? ", learned positions" : ", no positions";
  if (c.bias) extras += ", biases";
  if (c.qk_norm) extras += ", q/k norm";
  if (c.dropout > 0) extras += format(", dropout %.3g", c.dropout);
  return format("decoder, %lld layers x %lld, %lld heads (%lld kv) x %lld, mlp %lld, vocab %lld, %s head%s",
                static_cast<long long>(c.layers), static_cast<long long>(c.width),
                static_cast<long long>(c.heads), static_cast<long long>(c.kv_heads),
                static_cast<long long>(c.head_width), static_cast<long long>(c.mlp),
                static_cast<long long>(c.vocab), c.tied ? "tied" : "separate", extras.c_str());
}

std::unique_ptr<Block> layer_of(const DecoderConfig& c, std::int64_t index) {
  const double out_std =
      c.init_residual ? c.init_std / std::sqrt(2.0 * static_cast<double>(c.layers)) : c.init_std;
  const AttentionConfig attention{.width = c.width,
                                  .heads = c.heads,
                                  .kv_heads = c.kv_heads,
                                  .head_width = c.head_width,
                                  .rope = c.rope,
                                  .window = c.window_of(index),
                                  .qk_norm = c.qk_norm,
                                  .bias = c.bias,
                                  .norm = c.norm,
                                  .dropout = c.dropout,
                                  .init_std = c.init_std,
                                  .out_init_std = out_std};
  const MlpConfig mlp{.width = c.width,
                      .hidden = c.mlp,
                      .activation = c.activation,
                      .bias = c.bias,
                      .norm = c.norm,
                      .dropout = c.dropout,
                      .init_std = c.init_std,
                      .out_init_std = out_std};
  return std::make_unique<LayerBlock>("layers." + std::to_string(index), attention, mlp);
}

}  // namespace

Model build_decoder(ConfigSection section, const ModelContext& context) {
  const DecoderConfig c = read_decoder_config(std::move(section), context);
  Model model;
  model.family = "decoder";
  model.remat_sites = {"attention", "qkv", "mlp", "mlp_hidden"};
  if (!c.valid) return model;
  model.summary = summary_of(c);
  const ParamSpec table{"embed.weight",
                        {c.vocab, c.width},
                        {LogicalAxis::kVocab, LogicalAxis::kWidth},
                        Init::normal(c.init_std)};
  std::optional<ParamSpec> positions;
  if (c.positions > 0)
    positions = ParamSpec{"embed.positions",
                          {c.positions, c.width},
                          {LogicalAxis::kPositions, LogicalAxis::kWidth},
                          Init::normal(c.init_std)};
  ParamSpec head = table;
  if (!c.tied) head.name = "head.weight";
  model.chain.push_back(std::make_unique<EmbedBlock>(table, std::move(positions), c.dropout));
  for (std::int64_t i = 0; i < c.layers; ++i) model.chain.push_back(layer_of(c, i));
  model.chain.push_back(std::make_unique<HeadBlock>(c.norm, std::move(head), c.width, c.head_chunk));
  return model;
}

}  // namespace dew
