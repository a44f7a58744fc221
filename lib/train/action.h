// The program of a step: tiny actions, printed as text and executed one after the other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dew {

enum class Act : std::uint8_t {
  kForward,         ///< F
  kBackward,        ///< B: input and weight gradients
  kBackwardInput,   ///< I: input gradients alone
  kBackwardWeight,  ///< W: the weight gradients that I put off
  kReduceGrads,     ///< R: sum a chunk's gradients over ranks; directly behind the backward it belongs to
};

struct Action {
  Act act = Act::kForward;
  int chunk = 0;
  int microbatch = 0;
  bool operator==(const Action&) const = default;
};

using Program = std::vector<Action>;

/// "0F0 0B0 0R0": chunk, act, microbatch.
std::string to_text(const Program& program);

/// The program without pipelining: F0 B0 F1 B1 ..., gradients reduced after the last backward, or after each
/// one when `reduce_each`.
Program sequential_program(int microbatches, bool reduce_each);
/// The same with the weight gradients of each microbatch in an action of their own: F0 I0 W0 F1 I1 W1 ...
Program split_backward_program(int microbatches, bool reduce_each);

/// Checks that every microbatch of 0..microbatches-1 is run forward once, then backward once (B, or I then
/// W), in that order, that a reduction follows a B or W, and that the program ends with one. Throws Error
/// with the program's text.
void check_program(const Program& program, int microbatches);

}  // namespace dew
