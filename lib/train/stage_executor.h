// Runs a program over the blocks of a model: gathers ahead, keeps a tape per block and microbatch, drops and
// rebuilds what recomputation says, and starts reductions.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "autograd/remat.h"
#include "model/model.h"
#include "train/action.h"
#include "train/param_store.h"

namespace dew {

class StageExecutor {
 public:
  /// `prefetch` gathers the next block while one computes.
  StageExecutor(const Model& model, ParamStore& store, const RematPolicy& policy, bool prefetch);

  /// Runs one step's program and returns this rank's part of the loss. Afterwards the reduced gradients are
  /// in the store once it has finished. Throws Error when the loss is not a partial sum over exactly the data
  /// axes.
  double run(const Program& program, std::span<const Microbatch> microbatches);
  /// This rank's part of the loss of one microbatch, without gradients.
  double evaluate(const Microbatch& microbatch);

 private:
  /// One block on one microbatch between its forward and its backward.
  struct BlockRun {
    std::unique_ptr<Tape> tape;  ///< null when the block was dropped
    ParamViews views;            ///< what the forward recorded under
    Vars in, out;
    DeferredWork deferred;
  };
  struct Live {
    std::vector<BlockRun> blocks;
  };
  /// Whether a block's gradients are summed over ranks when it has done its backward: kPart over the storage
  /// axes, kLast over all.
  enum class Reduce : std::uint8_t { kNo, kPart, kLast };

  bool drops(int block) const;
  void hold(int block, int next_block);
  int next_block(const Program& program, std::size_t at) const;
  Vars run_block(int block, const Microbatch& microbatch, Tape& tape, const Vars& in);
  void forget_values(BlockRun& run, int block) const;
  void rebuild(int block, const Microbatch& microbatch, BlockRun& run);
  double forward(const Microbatch& microbatch, Live& live, int next_block);
  void backward(const Microbatch& microbatch, Live& live, WeightMode mode, Reduce reduce, int next_block);
  void backward_weights(Live& live, Reduce reduce);
  void close(int block, Reduce reduce);
  static Reduce reduce_after(const Program& program, std::size_t action);
  double take_loss(const Var& loss, const Microbatch& microbatch);

  const Model& model_;
  ParamStore& store_;
  const RematPolicy& policy_;
  bool prefetch_;
  int held_ahead_ = -1;  ///< block whose gather was begun before its turn, or -1
  RopeTables rope_tables_;
};

}  // namespace dew
