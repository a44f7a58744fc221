#include "train/engine.h"

#include <algorithm>
#include <utility>

#include "train/lowering.h"
#include "train/schedule_check.h"
#include "train/schedules.h"

namespace dew {

std::vector<Program> step_programs(const RunSpec& spec, const MeshShape& mesh, const ChainCut& cut) {
  const PipelineShape shape{cut.stages, static_cast<int>(microbatches_of(spec, mesh)), cut.chunks};
  std::vector<Program> compute;
  for (int stage = 0; stage < shape.stages; ++stage)
    compute.push_back(compute_program(spec.pipeline.schedule, shape, stage));
  std::vector<Program> programs = lower(compute, shape, spec.layout.reduce == ReduceWhen::kMicrobatch);
  const ActionTimes even;
  check_schedule(programs, shape, {&even, 1});
  return programs;
}

std::vector<Program> evaluation_programs(const ChainCut& cut) {
  const PipelineShape shape{cut.stages, 1, cut.chunks};
  std::vector<Program> programs = lowered_evaluation(shape);
  const ActionTimes even;
  check_evaluation(programs, shape, {&even, 1});
  return programs;
}

Engine::Engine(const EngineParts& parts, const Mesh& mesh, Stream& stream)
    : spec_(parts.spec),
      store_(parts.model, parts.rules, parts.cut, mesh, parts.spec.precision, stream),
      executor_(
          {parts.model, parts.cut, parts.remat, parts.sequence,
           survey_chain(parts.model, parts.rules, parts.spec, parts.sequence, mesh.shape(), mesh.coord())
               .blocks},
          store_, true),
      optimizer_(parts.spec.optimizer, store_),
      program_(step_programs(parts.spec, mesh.shape(),
                             parts.cut)[static_cast<std::size_t>(mesh.coord(Axis::kStage))]),
      evaluation_(evaluation_programs(parts.cut)[static_cast<std::size_t>(mesh.coord(Axis::kStage))]),
      token_placements_(dew::token_placements(mesh.shape())) {
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
  // All ranks name all tensors in one order; a parameter of another stage has no part here.
  const auto add_all = [&](const std::string& prefix, const std::string& suffix, const auto& local) {
    for (std::size_t i = 0; i < store_.specs().size(); ++i) {
      const ParamSpec& spec = store_.specs()[i];
      NamedShard shard{prefix + spec.name + suffix, spec.shape, {}, store_.master_arena().range(0, 0), false};
      if (const ShardedParameter* param = store_.find(static_cast<int>(i))) {
        shard.boxes = param->layout.boxes(coord, param->range);
        shard.local = local(*param);
        shard.owned = param->owned;
      }
      shards.push_back(std::move(shard));
    }
  };
  add_all("/params/", "", [](const ShardedParameter& p) { return p.master; });
  add_all("/optimizer/", "/m", [this](const ShardedParameter& p) { return optimizer_.first_moment(p); });
  add_all("/optimizer/", "/v", [this](const ShardedParameter& p) { return optimizer_.second_moment(p); });
  if (ema_) add_all("/ema/", "", [this](const ShardedParameter& p) { return ema_->of(p); });
  return shards;
}

}  // namespace dew
