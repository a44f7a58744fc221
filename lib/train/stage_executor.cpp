#include "train/stage_executor.h"

#include <algorithm>
#include <utility>

#include "tensor/copy.h"

namespace dew {

StageExecutor::StageExecutor(ExecutorParts parts, ParamStore& store, bool prefetch)
    : parts_(std::move(parts)),
      store_(store),
      transfers_(store.mesh(), store.stream()),
      prefetch_(prefetch && parts_.cut.stages == 1),
      keeps_gathered_(parts_.cut.stages > 1) {}

int StageExecutor::part_of(int chunk) const {
  return parts_.cut.part(store_.mesh().coord(Axis::kStage), chunk);
}

const std::vector<Boundary>& StageExecutor::boundary_before(int chunk) const {
  return parts_.survey[static_cast<std::size_t>(first_block(chunk)) - 1].out;
}

const std::vector<Boundary>& StageExecutor::boundary_after(int chunk) const {
  return parts_.survey[static_cast<std::size_t>(end_block(chunk)) - 1].out;
}

bool StageExecutor::drops(int block) const {
  return parts_.remat.whole_blocks && parts_.model.chain[static_cast<std::size_t>(block)]->may_rerun();
}

// ---- weights

void StageExecutor::hold_stage(bool hold) {
  if (!keeps_gathered_) return;
  for (int chunk = 0; chunk < parts_.cut.chunks; ++chunk)
    for (int b = first_block(chunk); b < end_block(chunk); ++b) hold ? store_.gather(b) : store_.release(b);
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

// The block that the first computing action from `at` on begins with, or -1.
int StageExecutor::next_block(const Program& program, std::size_t at) const {
  for (; at < program.size(); ++at) {
    const Action& action = program[at];
    if (action.act == Act::kForward) return first_block(action.chunk);
    if (action.act == Act::kBackward || action.act == Act::kBackwardInput) return end_block(action.chunk) - 1;
  }
  return -1;
}

// ---- forward

Vars StageExecutor::run_block(int block, const Microbatch& microbatch, Tape& tape, const Vars& in) {
  Scope scope{tape, store_.mesh(), parts_.remat, rope_tables_, parts_.sequence};
  return parts_.model.chain[static_cast<std::size_t>(block)]->forward(scope, microbatch, in);
}

// The loss is a sum over this rank's tokens: partial over the axes that split them. Ranks that hold the same
// loss must not count it twice.
double StageExecutor::take_loss(const Var& loss, const Microbatch& microbatch) {
  Placements expected = microbatch.placements.summed();
  expected[Axis::kTensor] = loss.placements[Axis::kTensor];
  DEW_CHECK(loss.placements == expected && expected.axes_that_are(Placement::kSharded).empty(),
            loss.placements.str(), microbatch.placements.str());
  const Mesh& mesh = store_.mesh();
  const bool counts = loss.placements[Axis::kTensor] == Placement::kPartial || mesh.coord(Axis::kTensor) == 0;
  const double value = read_scalar(store_.stream(), loss.value);
  return counts ? value : 0;
}

// What the blocks before this chunk made, as values with the placements they have there.
Vars StageExecutor::take_inputs(const Action& action) {
  if (is_first_part(action.chunk)) return {};
  Vars values;
  std::vector<Tensor> received = transfers_.take(Direction::kForward, action.chunk, action.microbatch);
  for (std::size_t i = 0; i < received.size(); ++i)
    values.push_back({std::move(received[i]), boundary_before(action.chunk)[i].placements, -1});
  return values;
}

double StageExecutor::forward(const Action& action, const Microbatch& microbatch, Live& live,
                              int next_block) {
  Vars values = take_inputs(action);
  const int begin = first_block(action.chunk), end = end_block(action.chunk);
  live.blocks.reserve(static_cast<std::size_t>(end - begin));  // tapes know the addresses of their views
  for (int b = begin; b < end; ++b) {
    hold(b, b + 1 < end ? b + 1 : next_block);
    BlockRun& run = live.blocks.emplace_back();
    run.views = store_.get(b, !drops(b));
    run.tape = std::make_unique<Tape>(store_.stream(), run.views);
    for (Var& value : values) run.in.push_back(run.tape->input(std::move(value.value), value.placements));
    run.out = run_block(b, microbatch, *run.tape, run.in);
    values = run.out;
    if (drops(b)) run.tape.reset();
    forget_values(run, b);
    store_.release(b);
    store_.fold_gradients(b);  // the fused head writes in its forward
  }
  if (is_last_part(action.chunk)) return take_loss(values.front(), microbatch);
  for (Var& value : values) live.outgoing.push_back(std::move(value.value));
  return 0;
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

// ---- backward

// The gradients of a chunk's outputs: one for the loss, else what the blocks behind it made.
std::vector<Tensor> StageExecutor::take_seeds(const Action& action) {
  if (!is_last_part(action.chunk))
    return transfers_.take(Direction::kBackward, action.chunk, action.microbatch);
  std::vector<Tensor> seeds{Tensor::empty({1}, DType::kF64, store_.stream(), Owner::kActivations)};
  fill(store_.stream(), seeds.front(), 1);
  return seeds;
}

void StageExecutor::backward(const Action& action, const Microbatch& microbatch, Live& live, Reduce reduce,
                             int next_block) {
  const WeightMode mode = action.act == Act::kBackward ? WeightMode::kNow : WeightMode::kDefer;
  std::vector<Tensor> gradients = take_seeds(action);
  const int begin = first_block(action.chunk);
  for (int b = end_block(action.chunk) - 1; b >= begin; --b) {
    hold(b, b > begin ? b - 1 : next_block);
    BlockRun& run = live.blocks[static_cast<std::size_t>(b - begin)];
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
    if (mode == WeightMode::kNow)
      close(b, reduce);
    else
      store_.fold_gradients(b);
  }
  for (std::size_t i = 0; i < gradients.size() && !is_first_part(action.chunk); ++i) {
    const Boundary& boundary = boundary_before(action.chunk)[i];
    if (!gradients[i].defined())  // no part in the loss
      gradients[i] = Tensor::zeros(boundary.shape, boundary.dtype, store_.stream(), Owner::kActivations);
    live.outgoing.push_back(std::move(gradients[i]));
  }
}

void StageExecutor::close(int block, Reduce reduce) {
  store_.fold_gradients(block);
  if (reduce != Reduce::kNo) store_.reduce(block, reduce == Reduce::kLast);
}

// Deferred weight gradients need no weights, only the buffers to write to.
void StageExecutor::backward_weights(const Action& action, Live& live, Reduce reduce) {
  const int begin = first_block(action.chunk);
  for (int b = end_block(action.chunk) - 1; b >= begin; --b) {
    BlockRun& run = live.blocks[static_cast<std::size_t>(b - begin)];
    run.deferred.run(store_.stream(), run.views);
    close(b, reduce);
  }
}

// A reduction that follows a backward in the program runs block by block inside it, beside the compute of the
// next block and before more unreduced gradients pile up. The last one of a chunk ends its sums.
StageExecutor::Reduce StageExecutor::reduce_after(const Program& program, std::size_t action) {
  const std::size_t at = action + 1;
  if (at >= program.size() || program[at].act != Act::kReduceGrads) return Reduce::kNo;
  const int chunk = program[at].chunk;
  const bool more = std::any_of(
      program.begin() + static_cast<std::ptrdiff_t>(at) + 1, program.end(),
      [chunk](const Action& later) { return later.act == Act::kReduceGrads && later.chunk == chunk; });
  return more ? Reduce::kPart : Reduce::kLast;
}

// ---- programs

double StageExecutor::act(const Program& program, std::size_t at, std::span<const Microbatch> microbatches,
                          Live& live) {
  const Action& action = program[at];
  const Microbatch& microbatch = microbatches[static_cast<std::size_t>(action.microbatch)];
  switch (action.act) {
    case Act::kForward:
      return forward(action, microbatch, live, next_block(program, at + 1));
    case Act::kBackward:
      backward(action, microbatch, live, reduce_after(program, at), next_block(program, at + 1));
      break;
    case Act::kBackwardInput:
      backward(action, microbatch, live, Reduce::kNo, next_block(program, at + 1));
      break;
    case Act::kBackwardWeight:
      backward_weights(action, live, reduce_after(program, at));
      break;
    case Act::kSendForward:
      transfers_.send(Direction::kForward, std::exchange(live.outgoing, {}));
      break;
    case Act::kSendBackward:
      transfers_.send(Direction::kBackward, std::exchange(live.outgoing, {}));
      break;
    case Act::kRecvForward:
      transfers_.post(Direction::kForward, action.chunk, action.microbatch, boundary_before(action.chunk));
      break;
    case Act::kRecvBackward:
      transfers_.post(Direction::kBackward, action.chunk, action.microbatch, boundary_after(action.chunk));
      break;
    case Act::kReduceGrads:
      break;  // done inside the backward before it
  }
  return 0;
}

double StageExecutor::run(const Program& program, std::span<const Microbatch> microbatches) {
  const std::size_t chunks = static_cast<std::size_t>(parts_.cut.chunks);
  std::vector<std::vector<Live>> live(chunks);
  for (auto& chunk : live) chunk.resize(microbatches.size());
  double loss = 0;
  hold_stage(true);
  for (std::size_t i = 0; i < program.size(); ++i) {
    const Action& action = program[i];
    if (observer_) observer_(action, true);
    loss += act(program, i, microbatches,
                live[static_cast<std::size_t>(action.chunk)][static_cast<std::size_t>(action.microbatch)]);
    if (observer_) observer_(action, false);
  }
  hold_stage(false);
  transfers_.finish();
  DEW_CHECK(held_ahead_ < 0, held_ahead_);
  return loss;
}

Vars StageExecutor::evaluate_chunk(const Action& action, const Microbatch& microbatch, int next_block) {
  Vars values = take_inputs(action);
  const int end = end_block(action.chunk);
  for (int b = first_block(action.chunk); b < end; ++b) {
    hold(b, b + 1 < end ? b + 1 : next_block);
    const ParamViews views = store_.get(b, false);
    Tape tape(store_.stream(), views);
    values = run_block(b, microbatch, tape, values);
    store_.release(b);
  }
  return values;
}

double StageExecutor::evaluate(const Program& program, const Microbatch& microbatch) {
  double loss = 0;
  std::vector<Tensor> outgoing;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const Action& action = program[i];
    DEW_CHECK(
        action.act == Act::kForward || action.act == Act::kSendForward || action.act == Act::kRecvForward,
        to_text(program));
    if (action.act == Act::kRecvForward)
      transfers_.post(Direction::kForward, action.chunk, 0, boundary_before(action.chunk));
    if (action.act == Act::kSendForward) transfers_.send(Direction::kForward, std::exchange(outgoing, {}));
    if (action.act != Act::kForward) continue;
    Vars values = evaluate_chunk(action, microbatch, next_block(program, i + 1));
    if (is_last_part(action.chunk)) {
      loss = take_loss(values.front(), microbatch);
      continue;
    }
    for (Var& value : values) outgoing.push_back(std::move(value.value));
  }
  transfers_.finish();
  return loss;
}

}  // namespace dew
