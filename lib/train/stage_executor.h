// Runs a program over the blocks of this rank's stage: gathers ahead, keeps a tape per block and microbatch,
// drops and rebuilds what recomputation says, passes values between stages, and starts reductions.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "autograd/remat.h"
#include "model/model.h"
#include "train/action.h"
#include "train/chain_survey.h"
#include "train/param_store.h"
#include "train/stage_transfers.h"

namespace dew {

/// What an executor runs; the referents outlive it.
struct ExecutorParts {
  const Model& model;
  const ChainCut& cut;
  const RematPolicy& remat;
  const SequencePolicy& sequence;
  std::vector<BlockSurvey> survey;  ///< by block: what this rank's values between blocks look like
};

class StageExecutor {
 public:
  /// `prefetch` gathers the next block while one computes. With several stages every block of the stage is
  /// gathered once, at the start of a step, and kept to its end: a gather for each microbatch would multiply
  /// the traffic.
  StageExecutor(ExecutorParts parts, ParamStore& store, bool prefetch);

  /// Runs one step's program and returns the part of the loss that this rank counts: of ranks that hold the
  /// same loss the first one counts it, and only the last stage has one. Afterwards the reduced gradients are
  /// in the store once it has finished. Throws Error when the loss is not a partial sum over exactly the data
  /// axes (and perhaps tensor).
  double run(const Program& program, std::span<const Microbatch> microbatches);
  /// The same part of the loss of one microbatch, without gradients, by the program of an evaluation.
  /// Collective over stage.
  double evaluate(const Program& program, const Microbatch& microbatch);

  /// Called around every action of a program, for measurements.
  using Observer = std::function<void(const Action&, bool begins)>;
  void observe(Observer observer) { observer_ = std::move(observer); }

 private:
  /// One block on one microbatch between its forward and its backward.
  struct BlockRun {
    std::unique_ptr<Tape> tape;  ///< null when the block was dropped
    ParamViews views;            ///< what the forward recorded under
    Vars in, out;
    DeferredWork deferred;
  };
  /// One chunk on one microbatch.
  struct Live {
    std::vector<BlockRun> blocks;
    std::vector<Tensor> outgoing;  ///< made by the last action and not sent yet
  };
  /// Whether a block's gradients are summed over ranks when it has done its backward: kPart over the storage
  /// axes, kLast over all.
  enum class Reduce : std::uint8_t { kNo, kPart, kLast };

  int first_block(int chunk) const { return parts_.cut.begin(part_of(chunk)); }
  int end_block(int chunk) const { return parts_.cut.end(part_of(chunk)); }
  int part_of(int chunk) const;
  bool is_first_part(int chunk) const { return part_of(chunk) == 0; }
  bool is_last_part(int chunk) const { return part_of(chunk) + 1 == parts_.cut.parts(); }
  const std::vector<Boundary>& boundary_before(int chunk) const;
  const std::vector<Boundary>& boundary_after(int chunk) const;

  bool drops(int block) const;
  void hold_stage(bool hold);
  void hold(int block, int next_block);
  int next_block(const Program& program, std::size_t at) const;
  Vars run_block(int block, const Microbatch& microbatch, Tape& tape, const Vars& in);
  void forget_values(BlockRun& run, int block) const;
  void rebuild(int block, const Microbatch& microbatch, BlockRun& run);
  Vars take_inputs(const Action& action);
  double forward(const Action& action, const Microbatch& microbatch, Live& live, int next_block);
  Vars evaluate_chunk(const Action& action, const Microbatch& microbatch, int next_block);
  std::vector<Tensor> take_seeds(const Action& action);
  void backward(const Action& action, const Microbatch& microbatch, Live& live, Reduce reduce,
                int next_block);
  void backward_weights(const Action& action, Live& live, Reduce reduce);
  void close(int block, Reduce reduce);
  double act(const Program& program, std::size_t at, std::span<const Microbatch> microbatches, Live& live);
  static Reduce reduce_after(const Program& program, std::size_t action);
  double take_loss(const Var& loss, const Microbatch& microbatch);

  ExecutorParts parts_;
  ParamStore& store_;
  StageTransfers transfers_;
  bool prefetch_;
  bool keeps_gathered_;
  int held_ahead_ = -1;  ///< block whose gather was begun before its turn, or -1
  RopeTables rope_tables_;
  Observer observer_;
};

}  // namespace dew
