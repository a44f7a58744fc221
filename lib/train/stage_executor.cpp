#include "train/stage_executor.h"

#include <utility>

#include "tensor/copy.h"

namespace dew {

StageExecutor::StageExecutor(const Model& model, ParamStore& store, const RematPolicy& policy, bool prefetch)
    : model_(model), store_(store), policy_(policy), prefetch_(prefetch) {}

bool StageExecutor::drops(int block) const {
  return policy_.whole_blocks && model_.chain[static_cast<std::size_t>(block)]->may_rerun();
}

// Takes a hold of the block's weights, and one of the block needed next, so that its gather runs beside the
// compute.
void StageExecutor::hold(int block, int next_block) {
  if (held_ahead_ != block) store_.gather(block);
  DEW_CHECK(held_ahead_ == block || held_ahead_ < 0, held_ahead_, block);
  held_ahead_ = -1;
  if (!prefetch_ || next_block < 0) return;
  store_.gather(next_block);
  held_ahead_ = next_block;
}

Vars StageExecutor::run_block(int block, const Microbatch& microbatch, Tape& tape, const Vars& in) {
  Scope scope{tape, store_.mesh(), policy_, rope_tables_};
  return model_.chain[static_cast<std::size_t>(block)]->forward(scope, microbatch, in);
}

// The loss is a sum over this rank's tokens: partial over the axes that split them, and over no other.
double StageExecutor::take_loss(const Var& loss, const Microbatch& microbatch) {
  DEW_CHECK(loss.placements == microbatch.placements.summed(), loss.placements.str(),
            microbatch.placements.str());
  return read_scalar(store_.stream(), loss.value);
}

double StageExecutor::forward(const Microbatch& microbatch, Live& live, int next_block) {
  const int blocks = store_.blocks();
  live.blocks.resize(static_cast<std::size_t>(blocks));
  Vars values;
  for (int b = 0; b < blocks; ++b) {
    hold(b, b + 1 < blocks ? b + 1 : next_block);
    BlockRun& run = live.blocks[static_cast<std::size_t>(b)];
    run.views = store_.get(b, !drops(b));
    run.tape = std::make_unique<Tape>(store_.stream(), run.views);
    for (Var& value : values) run.in.push_back(run.tape->input(std::move(value.value), value.placements));
    run.out = run_block(b, microbatch, *run.tape, run.in);
    values = run.out;
    if (drops(b)) run.tape.reset();
    forget_values(run, b);
    store_.release(b);
  }
  return take_loss(values.front(), microbatch);
}

// The tape knows what it saved; the run keeps slots, and inputs only where the block runs again.
void StageExecutor::forget_values(BlockRun& run, int block) const {
  for (Var& out : run.out) out.value = {};
  if (!drops(block))
    for (Var& in : run.in) in.value = {};
  run.views.values.clear();
}

void StageExecutor::rebuild(int block, const Microbatch& microbatch, BlockRun& run) {
  run.tape = std::make_unique<Tape>(store_.stream(), run.views);
  for (Var& in : run.in) in = run.tape->input(std::move(in.value), in.placements);
  run.out = run_block(block, microbatch, *run.tape, run.in);
  for (Var& out : run.out) out.value = {};
  for (Var& in : run.in) in.value = {};
}

void StageExecutor::backward(const Microbatch& microbatch, Live& live, WeightMode mode, Reduce reduce,
                             int next_block) {
  std::vector<Tensor> gradients{Tensor::empty({1}, DType::kF64, store_.stream(), Owner::kActivations)};
  fill(store_.stream(), gradients.front(), 1);
  for (int b = store_.blocks() - 1; b >= 0; --b) {
    hold(b, b > 0 ? b - 1 : next_block);
    BlockRun& run = live.blocks[static_cast<std::size_t>(b)];
    run.views = store_.get(b, true);
    // Weight gradients of a block that runs again are formed at once: put off, they would keep all it rebuilt
    // alive.
    const WeightMode block_mode = run.tape ? mode : WeightMode::kNow;
    if (!run.tape) rebuild(b, microbatch, run);
    std::vector<Seed> seeds;
    for (std::size_t i = 0; i < run.out.size(); ++i) seeds.push_back({run.out[i], std::move(gradients[i])});
    gradients.clear();
    run.tape->backward(seeds, run.views, block_mode, &run.deferred);
    seeds.clear();
    for (const Var& in : run.in) gradients.push_back(run.tape->take_gradient(in));
    run.tape.reset();
    run.views.values.clear();
    store_.release(b);
    if (mode == WeightMode::kNow) close(b, reduce);
  }
}

void StageExecutor::close(int block, Reduce reduce) {
  store_.close_gradients(block);
  if (reduce != Reduce::kNo) store_.reduce(block, reduce == Reduce::kLast);
}

// Deferred weight gradients need no weights, only the buffers to write to.
void StageExecutor::backward_weights(Live& live, Reduce reduce) {
  for (int b = store_.blocks() - 1; b >= 0; --b) {
    BlockRun& run = live.blocks[static_cast<std::size_t>(b)];
    run.deferred.run(store_.stream(), run.views);
    close(b, reduce);
  }
}

// A reduction that follows a backward in the program runs block by block inside it, beside the compute of the
// next block and before more unreduced gradients pile up.
StageExecutor::Reduce StageExecutor::reduce_after(const Program& program, std::size_t action) {
  if (action + 1 >= program.size() || program[action + 1].act != Act::kReduceGrads) return Reduce::kNo;
  return action + 2 == program.size() ? Reduce::kLast : Reduce::kPart;
}

// The block that the first computing action from `at` on begins with, or -1.
int StageExecutor::next_block(const Program& program, std::size_t at) const {
  for (; at < program.size(); ++at) {
    if (program[at].act == Act::kForward) return 0;
    if (program[at].act == Act::kBackward || program[at].act == Act::kBackwardInput)
      return store_.blocks() - 1;
  }
  return -1;
}

double StageExecutor::run(const Program& program, std::span<const Microbatch> microbatches) {
  check_program(program, static_cast<int>(microbatches.size()));
  std::vector<Live> live(microbatches.size());
  double loss = 0;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const Action action = program[i];
    const std::size_t m = static_cast<std::size_t>(action.microbatch);
    switch (action.act) {
      case Act::kForward:
        loss += forward(microbatches[m], live[m], next_block(program, i + 1));
        break;
      case Act::kBackward:
        backward(microbatches[m], live[m], WeightMode::kNow, reduce_after(program, i),
                 next_block(program, i + 1));
        break;
      case Act::kBackwardInput:
        backward(microbatches[m], live[m], WeightMode::kDefer, Reduce::kNo, next_block(program, i + 1));
        break;
      case Act::kBackwardWeight:
        backward_weights(live[m], reduce_after(program, i));
        break;
      case Act::kReduceGrads:
        break;
    }
  }
  DEW_CHECK(held_ahead_ < 0, held_ahead_);
  return loss;
}

double StageExecutor::evaluate(const Microbatch& microbatch) {
  const int blocks = store_.blocks();
  Vars values;
  for (int b = 0; b < blocks; ++b) {
    hold(b, b + 1 < blocks ? b + 1 : -1);
    const ParamViews views = store_.get(b, false);
    Tape tape(store_.stream(), views);
    values = run_block(b, microbatch, tape, values);
    store_.release(b);
  }
  return take_loss(values.front(), microbatch);
}

}  // namespace dew
