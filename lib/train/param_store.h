// The shards of all parameters and their life: gather -> get -> release by block, gradients written into
// unreduced buffers, then reduced onto the shards. Gathered weights and unreduced gradients are counted by
// their holders.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "autograd/param_ref.h"
#include "comm/mesh.h"
#include "io/run_spec.h"
#include "model/layout_rules.h"
#include "model/model.h"
#include "train/chain_cut.h"

namespace dew {

/// One parameter as this rank holds it. Masters and gradients are views of one arena each.
struct ShardedParameter {
  ParamSpec spec;
  int index = 0;            ///< among all parameters of the model, the same number on every rank
  std::vector<int> stages;  ///< that use it, ascending; more than one for a tied parameter
  Layout layout;
  Range range;              ///< elements of the compute slab stored here
  std::int64_t offset = 0;  ///< of the first of them in the arenas
  Tensor master;            ///< [range] precision.master
  Tensor gradient;          ///< [range] precision.reduce: reduced, after finish()
  bool owned = true;        ///< counted once in norms, written once to disk
};

class ParamStore {
 public:
  /// Creates the state of the blocks on this rank's stage, sharded: a parameter never exists whole unless it
  /// is stored whole. Arenas hold decaying parameters first. Memory from the stream's pool.
  ParamStore(const Model& model, const LayoutRules& rules, const ChainCut& cut, const Mesh& mesh,
             const PrecisionSection& precision, Stream& stream);
  ~ParamStore();
  ParamStore(const ParamStore&) = delete;
  ParamStore& operator=(const ParamStore&) = delete;

  /// Every element from (seed, parameter name, global element index) alone.
  void initialize(std::uint64_t seed);

  /// Blocks are numbered over the whole chain; only those of this rank's stage may be asked for. Starts
  /// gathering a block's weights over their storage axes; counts one holder. Call on all ranks alike.
  void gather(int block);
  /// Waits for the gather. The views carry gradients when `with_gradients`.
  ParamViews get(int block, bool with_gradients);
  /// Gives one hold back; the last one frees the gathered weights.
  void release(int block);

  /// Folds what a block wrote on one microbatch into the accumulated gradients (a cast where precision.reduce
  /// differs from precision.compute). Call before another microbatch writes: what several wrote in
  /// precision.compute would be summed in it.
  void fold_gradients(int block);
  /// Starts summing a block's gradients over the storage axes onto the shards, and, when `last`, over the
  /// remaining data axes too. A tied parameter waits for all its blocks.
  void reduce(int block, bool last);
  /// Waits for every reduction; then adds up the gradients of parameters that several stages use, in the
  /// order of the stages. Gradients that nothing wrote are zero. Collective over stage.
  void finish();
  /// Ends the step: gradients count as unwritten, weights as changed. Nothing may be gathered.
  void weights_changed();

  /// Those of this rank's stage.
  std::span<ShardedParameter> params() { return params_; }
  std::span<const ShardedParameter> params() const { return params_; }
  /// All parameters of the model, by ShardedParameter::index.
  std::span<const ParamSpec> specs() const { return specs_; }
  /// The parameter with this index where this stage holds it, else null.
  const ShardedParameter* find(int index) const;
  const Mesh& mesh() const { return mesh_; }
  Stream& stream() const { return stream_; }
  /// Arena elements, those of decaying parameters first.
  std::int64_t arena_size() const { return master_.numel(); }
  std::int64_t decaying_size() const { return decaying_; }
  const Tensor& master_arena() const { return master_; }
  const Tensor& gradient_arena() const { return gradient_; }

 private:
  struct Weight;
  struct Gradient;
  class Sink;
  struct Reduction;

  void make_params(const Model& model, const LayoutRules& rules, const ChainCut& cut);
  void make_arenas();
  void sum_over_stages();
  bool stored_whole(int param) const;
  Communicator& storage_group(int param) const;
  void start_gather(int param);
  Tensor open_full(int param);
  Target gradient_target(int param);
  void start_reduction(int param, bool last);
  void advance(std::size_t keep);
  void finish_scatter(Reduction& reduction);

  const Mesh& mesh_;
  PrecisionSection precision_;
  Stream& stream_;
  std::vector<ParamSpec> specs_;
  std::vector<ShardedParameter> params_;
  std::vector<std::vector<int>> block_params_;       ///< by block, by ParamRef; empty on other stages
  std::vector<std::vector<ParamPart>> block_parts_;  ///< the same
  std::vector<Weight> weights_;
  std::vector<Gradient> gradients_;
  std::vector<std::unique_ptr<Sink>> sinks_;  ///< by block
  std::vector<Reduction> reductions_;         ///< started and not finished, oldest first
  std::size_t summing_ = 0;                   ///< of them, those whose scatter is done: the first ones
  Tensor master_, gradient_;
  std::int64_t decaying_ = 0;
};

}  // namespace dew
