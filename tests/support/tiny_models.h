// Models small enough for differences and plain loops, with their parameters whole and bound by hand: the
// chain of blocks without stores, plans or ranks.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/philox.h"
#include "io/config.h"
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
  microbatch.loss_scale = 1.0 / static_cast<double>(std::max<std::int64_t>(microbatch.batch.valid, 1));
  return microbatch;
}

/// Runs a chain on one microbatch.
class ChainRun {
 public:
  using ByName = std::map<std::string, Tensor>;

  ChainRun(Workbench& bench, const Model& model, DType dtype = DType::kF64)
      : bench_(bench), model_(model), dtype_(dtype), mesh_(MeshShape{}, MeshCoord{}, {}) {
    for (const ParamSpec& spec : model.params()) {
      Numbers x = draw(stream_key(5, spec.name), spec.shape.numel());
      for (double& value : x) value = spec.decays() ? value : 1 + value / 4;
      weights[spec.name] = bench.tensor(spec.shape, x, dtype, Owner::kWeights);
    }
    for (const auto& block : model.chain) sinks_.push_back(std::make_unique<Sink>(*this, *block));
  }

  ByName weights;
  ByName gradients;       ///< after differentiate
  std::int64_t kept = 0;  ///< bytes of activations between forward and backward
  std::int64_t peak = 0;  ///< the most bytes of activations

  /// The loss alone, nothing recorded.
  double evaluate(const Microbatch& microbatch) {
    Vars values;
    for (std::size_t b = 0; b < model_.chain.size(); ++b) {
      const ParamViews bound = views(b, false);
      Tape tape(bench_.stream, bound);
      Scope scope{tape, mesh_, no_policy_, tables_};
      values = model_.chain[b]->forward(scope, microbatch, values);
    }
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
      Scope scope{run.tape, mesh_, policy, tables_};
      values = model_.chain[b]->forward(scope, microbatch, run.in);
      run.out = values;
      for (Vars* vars : {&run.in, &run.out})
        for (Var& var : *vars) var.value = {};
    }
    const double loss = read_scalar(bench_.stream, values.front().value);
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

 private:
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
      const ParamSpec& spec = block_.params()[static_cast<std::size_t>(param.index)];
      Tensor& gradient = run_.gradients[spec.name];
      const bool written = gradient.defined();
      if (!written) gradient = Tensor::empty(spec.shape, run_.dtype_, run_.bench_.stream, Owner::kGradients);
      return {gradient, written};
    }

   private:
    ChainRun& run_;
    const Block& block_;
  };

  ParamViews views(std::size_t block, bool differentiate) const {
    ParamViews bound;
    for (const ParamSpec& spec : model_.chain[block]->params()) bound.values.push_back(weights.at(spec.name));
    if (differentiate) bound.gradients = sinks_[block].get();
    return bound;
  }

  Workbench& bench_;
  const Model& model_;
  DType dtype_;
  Mesh mesh_;
  RematPolicy no_policy_;
  RopeTables tables_;
  std::vector<std::unique_ptr<Sink>> sinks_;
};

}  // namespace dew::test
