#include "train/engine.h"

#include <algorithm>

namespace dew {
namespace {

Placements placements_on(const MeshShape& mesh) {
  AxisSet split;
  for (Axis axis : kAllAxes)
    if (kDataAxes.has(axis) && mesh[axis] > 1) split = split.with(axis);
  return Placements::sharded(split);
}

}  // namespace

Engine::Engine(const EngineParts& parts, const Mesh& mesh, Stream& stream)
    : spec_(parts.spec),
      store_(parts.model, parts.rules, mesh, parts.spec.precision, stream),
      executor_(parts.model, store_, parts.remat, true),
      optimizer_(parts.spec.optimizer, store_),
      program_(sequential_program(static_cast<int>(parts.spec.accumulate),
                                  parts.spec.layout.reduce == ReduceWhen::kMicrobatch)),
      token_placements_(placements_on(mesh.shape())) {
  if (parts.spec.ema) ema_.emplace(*parts.spec.ema, store_);
}

double Engine::gradients(std::span<const Microbatch> microbatches) {
  const double loss = executor_.run(program_, microbatches);
  store_.finish();
  return loss;
}

void Engine::update(std::int64_t step, double lr, double gradient_scale) {
  optimizer_.step(step, lr, gradient_scale);
  if (ema_) ema_->update();
}

void Engine::initialize() {
  store_.initialize(spec_.run.seed);
  if (ema_) ema_->reset();
}

void Engine::fill_missing(std::span<const std::string> prefixes) {
  if (ema_ && std::find(prefixes.begin(), prefixes.end(), "/ema/") != prefixes.end()) ema_->reset();
}

std::vector<NamedShard> Engine::named_shards() const {
  std::vector<NamedShard> shards;
  const MeshCoord& coord = store_.mesh().coord();
  const auto add = [&shards, &coord](const std::string& name, const ShardedParameter& param,
                                     const Tensor& local) {
    shards.push_back({name, param.spec.shape, param.layout.boxes(coord, param.range), local, param.owned});
  };
  for (const ShardedParameter& param : store_.params())
    add("/params/" + param.spec.name, param, param.master);
  for (const ShardedParameter& param : store_.params()) {
    add("/optimizer/" + param.spec.name + "/m", param, optimizer_.first_moment(param));
    add("/optimizer/" + param.spec.name + "/v", param, optimizer_.second_moment(param));
  }
  if (ema_)
    for (const ShardedParameter& param : store_.params())
      add("/ema/" + param.spec.name, param, ema_->of(param));
  return shards;
}

}  // namespace dew
