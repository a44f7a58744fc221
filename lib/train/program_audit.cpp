#include "train/program_audit.h"

#include <algorithm>
#include <bitset>
#include <vector>

#include "base/check.h"

namespace dew {
namespace {

std::size_t at_index(int i) {
  return static_cast<std::size_t>(i);
}

class Audit {
 public:
  Audit(const Program& program, const PipelineShape& shape, int stage)
      : program_(program),
        shape_(shape),
        stage_(stage),
        done_(at_index(shape.chunks * shape.microbatches)),
        next_(at_index(shape.chunks)) {}

  void run(bool training) {
    for (; at_ < program_.size(); ++at_) {
      const Action& action = program_[at_];
      if (action.chunk < 0 || action.chunk >= shape_.chunks || action.microbatch < 0 ||
          action.microbatch >= shape_.microbatches)
        refuse("misplaced: " + to_text(action) + " where chunks are below " + std::to_string(shape_.chunks) +
               " and microbatches below " + std::to_string(shape_.microbatches));
      if (done(action.act, action)) refuse("duplicate: a second " + to_text(action));
      visit(action);
      done_[slot(action)].set(static_cast<std::size_t>(action.act));
    }
    for (int c = 0; c < shape_.chunks; ++c)
      for (int m = 0; m < shape_.microbatches; ++m) complete(c, m, training);
  }

 private:
  using Done = std::bitset<kActCount>;
  /// By chunk: the microbatch whose turn it is.
  struct Next {
    int forward = 0, input = 0, weight = 0;
  };

  [[noreturn]] void refuse(const std::string& reason) const { refuse_program(reason, stage_, program_, at_); }
  std::size_t slot(const Action& action) const {
    return at_index(action.chunk * shape_.microbatches + action.microbatch);
  }
  bool done(Act act, const Action& of) const { return done_[slot(of)][static_cast<std::size_t>(act)]; }
  bool has_far_end(Act act, const Action& of) const {
    return far_end(shape_, stage_, {act, of.chunk, of.microbatch}).has_value();
  }

  // The present action comes before `needed`: is that later in the program, or nowhere?
  [[noreturn]] void refuse_before(const Action& needed) const {
    const std::string now = to_text(program_[at_]), first = to_text(needed);
    const bool later = std::find(program_.begin() + static_cast<std::ptrdiff_t>(at_), program_.end(),
                                 needed) != program_.end();
    refuse(later ? "out of order: " + now + " before " + first : "missing: " + first + " before " + now);
  }
  void expect(Act act, const Action& before) const {
    if (!done(act, before)) refuse_before({act, before.chunk, before.microbatch});
  }
  void expect_received(Act act, const Action& before) const {
    if (has_far_end(act, before)) expect(act, before);
  }
  void take_turn(int& next, const Action& action, Act act) const {
    if (action.microbatch != next) refuse_before({act, action.chunk, next});
    ++next;
  }

  void visit(const Action& action) {
    Next& next = next_[at_index(action.chunk)];
    switch (action.act) {
      case Act::kForward:
        expect_received(Act::kRecvForward, action);
        return take_turn(next.forward, action, action.act);
      case Act::kBackward:
      case Act::kBackwardInput: {
        const bool whole = action.act == Act::kBackward;
        if (done(whole ? Act::kBackwardInput : Act::kBackward, action))
          refuse("duplicate: " + to_text(action) + " behind another backward of it");
        expect(Act::kForward, action);
        expect_received(Act::kRecvBackward, action);
        take_turn(next.input, action, action.act);
        if (whole) take_turn(next.weight, action, Act::kBackwardWeight);
        return;
      }
      case Act::kBackwardWeight:
        expect(Act::kBackwardInput, action);
        return take_turn(next.weight, action, action.act);
      case Act::kReduceGrads:
        return visit_reduction(action);
      default:
        return visit_transfer(action);
    }
  }

  void visit_reduction(const Action& action) const {
    const Action before = at_ > 0 ? program_[at_ - 1] : Action{};
    const bool ends = before.act == Act::kBackward || before.act == Act::kBackwardWeight;
    if (!ends || before.chunk != action.chunk || before.microbatch != action.microbatch)
      refuse("misplaced: " + to_text(action) + " is not directly behind the B or W it belongs to");
  }

  void visit_transfer(const Action& action) const {
    if (!has_far_end(action.act, action))
      refuse("misplaced: " + to_text(action) + " of virtual stage " +
             std::to_string(shape_.virtual_stage(stage_, action.chunk)) + " of " +
             std::to_string(shape_.virtual_stages()) + " has no other end");
    if (action.act == Act::kSendForward) expect(Act::kForward, action);
    if (action.act == Act::kSendBackward && !done(Act::kBackward, action))
      expect(Act::kBackwardInput, action);
  }

  void complete(int chunk, int microbatch, bool training) const {
    const Action of{Act::kForward, chunk, microbatch};
    const auto wants = [&](Act act) {
      if (!done(act, of)) refuse("missing: " + to_text(Action{act, chunk, microbatch}));
    };
    const auto wants_sent = [&](Act act) {
      if (has_far_end(act, of)) wants(act);
    };
    wants(Act::kForward);
    wants_sent(Act::kSendForward);
    if (training) {
      const bool split = done(Act::kBackwardInput, of);
      wants(split ? Act::kBackwardWeight : Act::kBackward);
      wants_sent(Act::kSendBackward);
      if (microbatch + 1 == shape_.microbatches) wants(Act::kReduceGrads);
    } else if (done(Act::kBackward, of) || done(Act::kBackwardInput, of)) {
      refuse("misplaced: a backward of chunk " + std::to_string(chunk) + " in an evaluation");
    }
  }

  const Program& program_;
  const PipelineShape& shape_;
  int stage_;
  std::size_t at_ = 0;
  std::vector<Done> done_;  ///< by chunk and microbatch: the acts seen
  std::vector<Next> next_;
};

}  // namespace

std::string program_around(int stage, const Program& program, std::size_t at) {
  constexpr std::size_t kEachSide = 8;
  const std::size_t first = at > kEachSide ? at - kEachSide : 0;
  const std::size_t last = std::min(program.size(), at + kEachSide + 1);
  std::string text = "stage " + std::to_string(stage) + ':';
  if (first > 0) text += " ...";
  for (std::size_t i = first; i < last; ++i) {
    text += ' ' + to_text(program[i]);
    if (i == at) text += " <-- here";
  }
  if (last < program.size()) text += " ...";
  return at >= program.size() ? text + " <-- here" : text;
}

void refuse_program(const std::string& reason, int stage, const Program& program, std::size_t at) {
  throw Error("pipeline program: " + reason + "\n  " + program_around(stage, program, at));
}

void audit_program(const Program& program, const PipelineShape& shape, int stage, bool training) {
  Audit(program, shape, stage).run(training);
}

}  // namespace dew
