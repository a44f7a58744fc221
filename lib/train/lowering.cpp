#include "train/lowering.h"

#include <algorithm>
#include <cstdint>

#include "base/check.h"

namespace dew {
namespace {

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

/// A message on its way to a stage, in the order in which `from` sends.
struct Incoming {
  int from = 0;
  Action receive;
};

bool ends_backward(Act act) {
  return act == Act::kBackward || act == Act::kBackwardWeight;
}

/// What is sent behind a computing action, if it is sent anywhere.
Action send_behind(const Action& action) {
  const Act act = action.act == Act::kForward ? Act::kSendForward : Act::kSendBackward;
  return {act, action.chunk, action.microbatch};
}
bool makes_a_message(Act act) {
  return computes(act) && act != Act::kBackwardWeight;
}

class Lowering {
 public:
  Lowering(std::span<const Program> compute, const PipelineShape& shape, bool reduce_each)
      : compute_(compute), shape_(shape), reduce_each_(reduce_each), incoming_(at(shape.stages)) {
    DEW_CHECK(compute.size() == at(shape.stages), compute.size(), shape.stages);
    for (int s = 0; s < shape.stages; ++s) {
      for (const Action& action : compute[at(s)]) {
        DEW_CHECK(action.chunk >= 0 && action.chunk < shape.chunks, to_text(action), shape.chunks);
        DEW_CHECK(action.microbatch >= 0 && action.microbatch < shape.microbatches, to_text(action));
        if (!makes_a_message(action.act)) continue;
        if (const auto there = far_end(shape, s, send_behind(action)))
          incoming_[at(there->stage)].push_back({s, there->action});
      }
    }
  }

  Program stage(int s) const {
    const Program& compute = compute_[at(s)];
    const std::vector<Program> receives = receives_before(s);
    const std::vector<std::size_t> last = last_backwards(compute);
    Program program;
    for (std::size_t i = 0; i < compute.size(); ++i) {
      const Action& action = compute[i];
      program.insert(program.end(), receives[i].begin(), receives[i].end());
      program.push_back(action);
      if (ends_backward(action.act) && (reduce_each_ || last[at(action.chunk)] == i))
        program.push_back({Act::kReduceGrads, action.chunk, action.microbatch});
      if (makes_a_message(action.act) && far_end(shape_, s, send_behind(action)))
        program.push_back(send_behind(action));
    }
    return program;
  }

 private:
  std::vector<std::size_t> last_backwards(const Program& compute) const {
    std::vector<std::size_t> last(at(shape_.chunks), compute.size());
    for (std::size_t i = 0; i < compute.size(); ++i)
      if (ends_backward(compute[i].act)) last[at(compute[i].chunk)] = i;
    return last;
  }

  std::size_t slot(bool forward, int chunk, int microbatch) const {
    return at((chunk * shape_.microbatches + microbatch) * 2 + (forward ? 0 : 1));
  }

  // By (chunk, microbatch, direction): the index of the action that needs the message.
  std::vector<std::size_t> needs(int s) const {
    const Program& compute = compute_[at(s)];
    std::vector<std::size_t> needed(at(shape_.chunks * shape_.microbatches * 2), compute.size());
    for (std::size_t i = 0; i < compute.size(); ++i)
      if (makes_a_message(compute[i].act))
        needed[slot(compute[i].act == Act::kForward, compute[i].chunk, compute[i].microbatch)] = i;
    return needed;
  }

  // By computing action: the receives posted before it. From the last message of a pair to the first: none
  // may stand behind one that is sent later.
  std::vector<Program> receives_before(int s) const {
    const std::vector<Incoming>& incoming = incoming_[at(s)];
    const std::vector<std::size_t> needed = needs(s);
    const std::size_t actions = compute_[at(s)].size();
    std::vector<std::size_t> post(incoming.size());
    std::size_t before = actions, messages = 0;
    for (std::size_t i = incoming.size(); i-- > 0;) {
      if (i + 1 < incoming.size() && incoming[i].from != incoming[i + 1].from) before = actions;
      const Action& receive = incoming[i].receive;
      const std::size_t need =
          needed[slot(receive.act == Act::kRecvForward, receive.chunk, receive.microbatch)];
      DEW_CHECK(need < actions, "stage", s, "has no use for", to_text(receive), "of stage", incoming[i].from);
      before = std::min(before, need);
      post[i] = before > 0 ? before - 1 : 0;
    }
    std::vector<Program> receives(actions);
    for (std::size_t i = 0; i < incoming.size(); ++i) receives[post[i]].push_back(incoming[i].receive);
    for (const Action& action : compute_[at(s)]) {
      const Act act = action.act == Act::kForward ? Act::kRecvForward : Act::kRecvBackward;
      messages += makes_a_message(action.act) && far_end(shape_, s, {act, action.chunk, action.microbatch});
    }
    DEW_CHECK(messages == incoming.size(), "stage", s, "needs", messages,
              "messages; sent to it:", incoming.size());
    return receives;
  }

  std::span<const Program> compute_;
  PipelineShape shape_;
  bool reduce_each_;
  std::vector<std::vector<Incoming>> incoming_;  ///< by receiving stage; those of one sender lie together
};

}  // namespace

std::vector<Program> lower(std::span<const Program> compute, const PipelineShape& shape, bool reduce_each) {
  const Lowering lowering(compute, shape, reduce_each);
  std::vector<Program> programs;
  for (int s = 0; s < shape.stages; ++s) programs.push_back(lowering.stage(s));
  return programs;
}

std::vector<Program> lowered_evaluation(const PipelineShape& shape) {
  Program forward;
  for (int c = 0; c < shape.chunks; ++c) forward.push_back({Act::kForward, c, 0});
  const std::vector<Program> compute(at(shape.stages), forward);
  return lower(compute, {shape.stages, 1, shape.chunks}, false);
}

}  // namespace dew
