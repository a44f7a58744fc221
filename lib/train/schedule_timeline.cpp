#include "train/schedule_timeline.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "train/program_audit.h"

namespace dew {
namespace {

std::size_t at_index(int i) {
  return static_cast<std::size_t>(i);
}

bool sends(Act act) {
  return act == Act::kSendForward || act == Act::kSendBackward;
}

double duration(Act act, const ActionTimes& times) {
  switch (act) {
    case Act::kForward:
      return times.forward;
    case Act::kBackward:
      return times.input + times.weight;
    case Act::kBackwardInput:
      return times.input;
    case Act::kBackwardWeight:
      return times.weight;
    default:
      return 0;
  }
}

/// The message a computing action waits for, as its receive; W waits for none.
std::optional<Action> awaited(const Action& action) {
  if (action.act == Act::kForward) return Action{Act::kRecvForward, action.chunk, action.microbatch};
  if (action.act == Act::kBackward || action.act == Act::kBackwardInput)
    return Action{Act::kRecvBackward, action.chunk, action.microbatch};
  return std::nullopt;
}

/// The k-th send of a rank to another meets the k-th receive there, whatever they carry.
void check_pairs(std::span<const Program> programs, const PipelineShape& shape) {
  struct Pair {
    std::vector<std::size_t> sent, received;  ///< places in the programs of the two
  };
  std::vector<Pair> pairs(at_index(shape.stages * shape.stages));
  for (int s = 0; s < shape.stages; ++s) {
    const Program& program = programs[at_index(s)];
    for (std::size_t i = 0; i < program.size(); ++i) {
      const auto there = far_end(shape, s, program[i]);
      if (!there) continue;
      if (sends(program[i].act))
        pairs[at_index(s * shape.stages + there->stage)].sent.push_back(i);
      else
        pairs[at_index(there->stage * shape.stages + s)].received.push_back(i);
    }
  }
  for (int from = 0; from < shape.stages; ++from) {
    for (int to = 0; to < shape.stages; ++to) {
      const Pair& pair = pairs[at_index(from * shape.stages + to)];
      const Program& sender = programs[at_index(from)];
      const Program& receiver = programs[at_index(to)];
      const std::size_t both = std::min(pair.sent.size(), pair.received.size());
      for (std::size_t k = 0; k < both; ++k) {
        const Action& send = sender[pair.sent[k]];
        const Action& receive = receiver[pair.received[k]];
        if (far_end(shape, to, receive)->action == send) continue;
        refuse_program("mismatch: " + to_text(receive) + " meets " + to_text(send) + " of stage " +
                           std::to_string(from) + ", both number " + std::to_string(k) +
                           " of their pair\n  " + program_around(from, sender, pair.sent[k]),
                       to, receiver, pair.received[k]);
      }
      if (pair.sent.size() > both)
        refuse_program("missing: no receive of stage " + std::to_string(to) + " meets this send", from,
                       sender, pair.sent[both]);
      if (pair.received.size() > both)
        refuse_program("missing: no send of stage " + std::to_string(from) + " meets this receive", to,
                       receiver, pair.received[both]);
    }
  }
}

class Player {
 public:
  Player(std::span<const Program> programs, const PipelineShape& shape,
         std::span<const std::vector<double>> seconds)
      : programs_(programs), shape_(shape), seconds_(seconds), stages_(at_index(shape.stages)) {
    for (Stage& stage : stages_)
      stage.arrivals.resize(at_index(shape.chunks * shape.microbatches * 2), kNever);
    for (std::size_t s = 0; s < stages_.size(); ++s) timeline_.emplace_back(programs[s].size());
  }

  Timeline run() {
    for (int s = shape_.stages - 1; s >= 0; --s) ready_.push_back(s);
    while (!ready_.empty()) {
      const int s = ready_.back();
      ready_.pop_back();
      advance(s);
    }
    refuse_deadlock();
    return std::move(timeline_);
  }

 private:
  static constexpr double kNever = -1;
  struct Stage {
    std::size_t next = 0;
    double now = 0;
    std::optional<Action> waits_for;  ///< the receive whose message is not there yet
    std::vector<double> arrivals;     ///< by message: when it was sent
  };

  double& arrival(Stage& stage, const Action& receive) const {
    const int pair = receive.chunk * shape_.microbatches + receive.microbatch;
    return stage.arrivals[at_index(pair * 2 + (receive.act == Act::kRecvForward ? 0 : 1))];
  }

  // Until the stage has to wait or is done.
  void advance(int s) {
    Stage& stage = stages_[at_index(s)];
    const Program& program = programs_[at_index(s)];
    stage.waits_for.reset();
    for (; stage.next < program.size(); ++stage.next) {
      const Action& action = program[stage.next];
      double start = stage.now;
      const std::optional<Action> receive = awaited(action);
      if (receive && far_end(shape_, s, *receive)) {
        const double sent = arrival(stage, *receive);
        if (sent == kNever) {
          stage.waits_for = receive;
          return;
        }
        start = std::max(start, sent);
      }
      const double end = start + seconds_[at_index(s)][stage.next];
      timeline_[at_index(s)][stage.next] = {start, end};
      stage.now = end;
      if (sends(action.act)) send(s, action, end);
    }
  }

  void send(int s, const Action& action, double time) {
    const auto there = far_end(shape_, s, action);
    if (!there) return;
    Stage& receiver = stages_[at_index(there->stage)];
    arrival(receiver, there->action) = time;
    if (receiver.waits_for == there->action) ready_.push_back(there->stage);
  }

  void refuse_deadlock() const {
    std::string stuck;
    for (int s = 0; s < shape_.stages; ++s) {
      const Stage& stage = stages_[at_index(s)];
      if (!stage.waits_for) continue;
      const auto there = far_end(shape_, s, *stage.waits_for);
      const Program& program = programs_[at_index(s)];
      stuck += "\n  stage " + std::to_string(s) + " waits at " + to_text(program[stage.next]) + " for " +
               to_text(there->action) + " of stage " + std::to_string(there->stage) + "\n    " +
               program_around(s, program, stage.next);
    }
    if (!stuck.empty()) throw Error("pipeline program: deadlock" + stuck);
  }

  std::span<const Program> programs_;
  PipelineShape shape_;
  std::span<const std::vector<double>> seconds_;
  std::vector<Stage> stages_;
  std::vector<int> ready_;
  Timeline timeline_;
};

}  // namespace

Timeline play(std::span<const Program> programs, const PipelineShape& shape,
              std::span<const std::vector<double>> seconds) {
  DEW_CHECK(programs.size() == at_index(shape.stages), programs.size(), shape.stages);
  DEW_CHECK(seconds.size() == programs.size(), seconds.size(), programs.size());
  for (std::size_t s = 0; s < programs.size(); ++s) {
    DEW_CHECK(seconds[s].size() == programs[s].size(), seconds[s].size(), programs[s].size());
    for (const Action& action : programs[s])
      DEW_CHECK(action.chunk >= 0 && action.chunk < shape.chunks && action.microbatch >= 0 &&
                    action.microbatch < shape.microbatches,
                to_text(action), shape.chunks, shape.microbatches);
  }
  check_pairs(programs, shape);
  return Player(programs, shape, seconds).run();
}

Timeline play(std::span<const Program> programs, const PipelineShape& shape,
              std::span<const ActionTimes> times) {
  DEW_CHECK(times.size() == 1 || times.size() == programs.size(), times.size(), programs.size());
  std::vector<std::vector<double>> seconds;
  for (std::size_t s = 0; s < programs.size(); ++s) {
    std::vector<double>& stage = seconds.emplace_back();
    for (const Action& action : programs[s])
      stage.push_back(duration(action.act, times[times.size() == 1 ? 0 : s]));
  }
  return play(programs, shape, seconds);
}

}  // namespace dew
