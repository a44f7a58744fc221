#include "train/action.h"

#include <array>

#include "base/check.h"

namespace dew {
namespace {

char letter_of(Act act) {
  constexpr std::array<char, 5> kLetters{'F', 'B', 'I', 'W', 'R'};
  return kLetters[static_cast<std::size_t>(act)];
}

}  // namespace

std::string to_text(const Program& program) {
  std::string text;
  for (const Action& action : program) {
    if (!text.empty()) text += ' ';
    text += std::to_string(action.chunk) + letter_of(action.act) + std::to_string(action.microbatch);
  }
  return text;
}

Program sequential_program(int microbatches, bool reduce_each) {
  Program program;
  for (int m = 0; m < microbatches; ++m) {
    program.push_back({Act::kForward, 0, m});
    program.push_back({Act::kBackward, 0, m});
    if (reduce_each || m + 1 == microbatches) program.push_back({Act::kReduceGrads, 0, m});
  }
  return program;
}

Program split_backward_program(int microbatches, bool reduce_each) {
  Program program;
  for (int m = 0; m < microbatches; ++m) {
    program.push_back({Act::kForward, 0, m});
    program.push_back({Act::kBackwardInput, 0, m});
    program.push_back({Act::kBackwardWeight, 0, m});
    if (reduce_each || m + 1 == microbatches) program.push_back({Act::kReduceGrads, 0, m});
  }
  return program;
}

void check_program(const Program& program, int microbatches) {
  enum class State : std::uint8_t { kNew, kForwarded, kInputDone, kDone };
  std::vector<State> states(static_cast<std::size_t>(microbatches), State::kNew);
  Act previous = Act::kForward;
  for (const Action& action : program) {
    DEW_CHECK(action.microbatch >= 0 && action.microbatch < microbatches, to_text(program));
    State& state = states[static_cast<std::size_t>(action.microbatch)];
    const bool after_gradients = previous == Act::kBackward || previous == Act::kBackwardWeight;
    DEW_CHECK(action.act != Act::kReduceGrads || after_gradients, to_text(program));
    previous = action.act;
    State expected = State::kNew, next = State::kForwarded;
    if (action.act == Act::kBackward) expected = State::kForwarded, next = State::kDone;
    if (action.act == Act::kBackwardInput) expected = State::kForwarded, next = State::kInputDone;
    if (action.act == Act::kBackwardWeight) expected = State::kInputDone, next = State::kDone;
    if (action.act == Act::kReduceGrads) expected = State::kDone, next = State::kDone;
    DEW_CHECK(state == expected, to_text(program), "at", action.microbatch, letter_of(action.act));
    state = next;
  }
  for (State state : states) DEW_CHECK(state == State::kDone, to_text(program));
  DEW_CHECK(previous == Act::kReduceGrads, "the program ends without a reduction:", to_text(program));
}

}  // namespace dew
