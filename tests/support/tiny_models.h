// Models small enough for differences and plain loops, with their parameters whole and bound by hand: the
// chain of blocks without stores or plans, on one rank or with each rank's part of the weights.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/philox.h"
#include "io/config.h"
#include "model/layout_rules.h"
#include "model/registry.h"
#include "support/near.h"
#include "tensor/copy.h"

namespace dew::test {

/// The model of `model: {family: decoder, KEYS}`. Throws ConfigError as the program does.
inline Model decoder_of(const std::string& keys, std::int64_t data_vocab = 0) {
  Config config = Config::from_text("model: {family: decoder, " + keys + "}\n", "run.yaml");
  Model model = build_model(config.root(), {data_vocab, 0});
  config.throw_errors();
  return model;
}

/// [samples, length]: the positions from `first` on, in every sample.
inline Tensor positions_of(Workbench& bench, std::int64_t samples, std::int64_t length,
                           std::int64_t first = 0) {
  std::vector<std::int32_t> positions;
  for (std::int64_t i = 0; i < samples * length; ++i)
    positions.push_back(static_cast<std::int32_t>(first + i % length));
  return bench.ints({samples, length}, positions);
}

/// Tokens [samples, length] below `vocab`, and targets of which about one in four is masked.
inline Microbatch microbatch_of(Workbench& bench, std::int64_t samples, std::int64_t length,
                                std::int64_t vocab, std::int64_t first_position = 0) {
  std::vector<std::int32_t> tokens, targets;
  Microbatch microbatch;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(samples * length); ++i) {
    const PhiloxBlock random = philox(11, i, 0);
    const auto below = static_cast<std::uint32_t>(vocab);
    tokens.push_back(static_cast<std::int32_t>(random[0] % below));
    targets.push_back(random[1] % 4 == 0 ? -1 : static_cast<std::int32_t>(random[2] % below));
    if (targets.back() >= 0) ++microbatch.batch.valid;
  }
  microbatch.batch.tokens = bench.ints({samples, length}, tokens);
  microbatch.batch.targets = bench.ints({samples, length}, targets);
  microbatch.batch.first_position = first_position;
  microbatch.batch.positions = positions_of(bench, samples, length, first_position);
  microbatch.loss_scale = 1.0 / static_cast<double>(std::max<std::int64_t>(microbatch.batch.valid, 1));
  return microbatch;
}

/// What a rank computes with of a global tensor.
inline Numbers part_of(const Numbers& whole, const Layout& layout, const MeshCoord& coord) {
  Numbers part;
  const std::int64_t elements = layout.compute_slab(coord).extent.numel();
  for (std::int64_t i = 0; i < elements; ++i)
    part.push_back(whole[static_cast<std::size_t>(layout.global_index(coord, i))]);
  return part;
}

/// The rules of the default table, with these over them.
inline LayoutRules layout_rules_of(const std::map<std::string, std::vector<Axis>>& rules,
                                   std::int64_t min_shard = 0) {
  LayoutSection section;
  section.min_shard = min_shard;
  section.rules = rules;
  Config config = Config::from_text("model: {}\n", "run.yaml");
  LayoutRules result = make_layout_rules(section, config.root());
  config.root().section({"model", "", ""});
  config.throw_errors();
  return result;
}

/// Runs a chain on one microbatch.
class ChainRun {
 public:
  using ByName = std::map<std::string, Tensor>;

  ChainRun(Workbench& bench, const Model& model, DType dtype = DType::kF64)
      : ChainRun(bench, model, nullptr, {}, dtype) {}
  /// With this rank's part of each weight, whole over the axes of storage. The mesh must outlive the run.
  ChainRun(Workbench& bench, const Model& model, const Mesh& mesh, const LayoutRules& rules)
      : ChainRun(bench, model, &mesh, rules, DType::kF64) {}

  ByName weights;
  ByName gradients;       ///< after differentiate
  std::int64_t kept = 0;  ///< bytes of activations between forward and backward
  std::int64_t peak = 0;  ///< the most bytes of activations
  Placements placements;  ///< of the loss

  /// The loss alone, nothing recorded.
  double evaluate(const Microbatch& microbatch) {
    Vars values;
    for (std::size_t b = 0; b < model_.chain.size(); ++b) {
      const ParamViews bound = views(b, false);
      Tape tape(bench_.stream, bound);
      Scope scope{tape, *mesh_, no_policy_, tables_};
      values = model_.chain[b]->forward(scope, microbatch, values);
    }
    placements = values.front().placements;
    return read_scalar(bench_.stream, values.front().value);
  }

  /// The loss; fills the gradients.
  double differentiate(const Microbatch& microbatch, const RematPolicy& policy = {}) {
    gradients.clear();
    bench_.allocator.reset_peaks();
    std::vector<std::unique_ptr<BlockRun>> runs;
    Vars values;
    for (std::size_t b = 0; b < model_.chain.size(); ++b) {
      BlockRun& run = *runs.emplace_back(std::make_unique<BlockRun>(bench_.stream, views(b, true)));
      for (Var& value : values) run.in.push_back(run.tape.input(std::move(value.value), value.placements));
      Scope scope{run.tape, *mesh_, policy, tables_};
      values = model_.chain[b]->forward(scope, microbatch, run.in);
      run.out = values;
      for (Vars* vars : {&run.in, &run.out})
        for (Var& var : *vars) var.value = {};
    }
    const double loss = read_scalar(bench_.stream, values.front().value);
    placements = values.front().placements;
    values.clear();
    kept = bench_.live(Owner::kActivations);
    std::vector<Tensor> down{bench_.tensor({1}, {1})};
    for (; !runs.empty(); runs.pop_back()) {
      BlockRun& run = *runs.back();
      std::vector<Seed> seeds;
      for (std::size_t i = 0; i < run.out.size(); ++i) seeds.push_back({run.out[i], std::move(down[i])});
      run.tape.backward(seeds, run.bound, WeightMode::kNow, nullptr);
      down.clear();
      for (const Var& in : run.in) down.push_back(run.tape.take_gradient(in));
    }
    peak = bench_.peak(Owner::kActivations);
    return loss;
  }

  const Layout& layout(const std::string& name) const { return layouts_.at(name); }

 private:
  ChainRun(Workbench& bench, const Model& model, const Mesh* mesh, const LayoutRules& rules, DType dtype)
      : bench_(bench), model_(model), dtype_(dtype), mesh_(mesh) {
    if (mesh_ == nullptr) mesh_ = &alone_.emplace(MeshShape{}, MeshCoord{}, std::span<const AxisSet>{});
    for (const ParamSpec& spec : model.params()) {
      Numbers x = draw(stream_key(5, spec.name), spec.shape.numel());
      for (double& value : x) value = spec.decays() ? value : 1 + value / 4;
      const Layout layout = layout_of(spec, rules, mesh_->shape());
      layouts_.emplace(spec.name, layout);
      weights[spec.name] = bench.tensor(layout.compute_slab(mesh_->coord()).extent,
                                        part_of(x, layout, mesh_->coord()), dtype, Owner::kWeights);
    }
    for (const auto& block : model.chain) {
      sinks_.push_back(std::make_unique<Sink>(*this, *block));
      parts_.emplace_back();
      for (const ParamSpec& spec : block->params()) parts_.back().push_back(part(spec));
    }
  }

  ParamPart part(const ParamSpec& spec) const {
    ParamPart part{layouts_.at(spec.name).compute_slab(mesh_->coord()), {}};
    for (int d = 0; d < spec.shape.dims(); ++d) part.split.push_back(layouts_.at(spec.name).split_axes(d));
    return part;
  }

  struct BlockRun {
    BlockRun(Stream& stream, ParamViews views) : bound(std::move(views)), tape(stream, bound) {}
    ParamViews bound;
    Tape tape;
    Vars in, out;
  };

  class Sink final : public GradientSink {
   public:
    Sink(ChainRun& run, const Block& block) : run_(run), block_(block) {}
    Target gradient(ParamRef param) override {
      const std::string& name = block_.params()[static_cast<std::size_t>(param.index)].name;
      Tensor& gradient = run_.gradients[name];
      const bool written = gradient.defined();
      if (!written)
        gradient = gradient =
            Tensor::empty(run_.weights.at(name).shape(), run_.dtype_, run_.bench_.stream, Owner::kGradients);
      return {gradient, written};
    }

   private:
    ChainRun& run_;
    const Block& block_;
  };

  ParamViews views(std::size_t block, bool differentiate) const {
    ParamViews bound;
    for (const ParamSpec& spec : model_.chain[block]->params()) bound.values.push_back(weights.at(spec.name));
    bound.parts = parts_[block];
    if (differentiate) bound.gradients = sinks_[block].get();
    return bound;
  }

  Workbench& bench_;
  const Model& model_;
  DType dtype_;
  std::optional<Mesh> alone_;
  const Mesh* mesh_;
  std::map<std::string, Layout> layouts_;
  std::vector<std::vector<ParamPart>> parts_;  ///< by block
  RematPolicy no_policy_;
  RopeTables tables_;
  std::vector<std::unique_ptr<Sink>> sinks_;
};

}  // namespace dew::test
