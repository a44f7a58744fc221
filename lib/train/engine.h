// One rank's share of a training run: parameters, executor, optimizer and average on one mesh and stream. The
// trainer, the dry run and the verification all drive this one object.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "train/ema.h"
#include "train/optimizer.h"
#include "train/stage_executor.h"

namespace dew {

/// What an engine is made from; the referents outlive it.
struct EngineParts {
  const RunSpec& spec;
  const Model& model;
  const LayoutRules& rules;
  const RematPolicy& remat;
  const ChainCut& cut;
  const SequencePolicy& sequence;
};

/// The lowered program of every stage for the spec's schedule, checked by simulation. Throws Error when the
/// simulation finds a fault.
std::vector<Program> step_programs(const RunSpec& spec, const MeshShape& mesh, const ChainCut& cut);
/// The same for the evaluation of one microbatch.
std::vector<Program> evaluation_programs(const ChainCut& cut);

class Engine {
 public:
  Engine(const EngineParts& parts, const Mesh& mesh, Stream& stream);

  /// Runs the step's program; afterwards the reduced gradients are in the store. Returns this rank's part of
  /// the loss.
  double gradients(std::span<const Microbatch> microbatches);
  /// Optimizer step (counted from 1) and moving average.
  void update(std::int64_t step, double lr, double gradient_scale);
  double evaluate(const Microbatch& microbatch) { return executor_.evaluate(evaluation_, microbatch); }
  StageExecutor& executor() { return executor_; }

  /// Fresh weights from the seed; zero moments; the average equal to the weights.
  void initialize();
  /// After a restore: what a file without them leaves to be set ("/ema/": the average starts at the weights).
  void fill_missing(std::span<const std::string> prefixes);

  /// Every tensor of the state under its name in a checkpoint, views of the live memory.
  std::vector<NamedShard> named_shards() const;

  ParamStore& store() { return store_; }
  const AdamW& optimizer() const { return optimizer_; }
  const Program& program() const { return program_; }
  const Placements& token_placements() const { return token_placements_; }

 private:
  const RunSpec& spec_;
  ParamStore store_;
  StageExecutor executor_;
  AdamW optimizer_;
  std::optional<Ema> ema_;
  Program program_, evaluation_;
  Placements token_placements_;
};

}  // namespace dew
