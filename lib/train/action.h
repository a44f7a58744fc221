// The program of a step: tiny actions, printed as text and executed one after the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dew {

enum class Act : std::uint8_t {
  kForward,         ///< F
  kBackward,        ///< B: input and weight gradients
  kBackwardInput,   ///< I: input gradients alone
  kBackwardWeight,  ///< W: the weight gradients that I put off
  kSendForward,     ///< SF: a chunk's outputs go to the next virtual stage
  kRecvForward,  ///< RF: a chunk's inputs are awaited from the previous virtual stage; posted, never blocking
  kSendBackward,  ///< SB: the gradients of a chunk's inputs go to the previous virtual stage
  kRecvBackward,  ///< RB: the gradients of a chunk's outputs are awaited from the next virtual stage
  kReduceGrads,   ///< R: sum a chunk's gradients over ranks; directly behind the B or W it belongs to
};
inline constexpr int kActCount = 9;

struct Action {
  Act act = Act::kForward;
  int chunk = 0;
  int microbatch = 0;
  bool operator==(const Action&) const = default;
};

/// What one rank does in one step.
using Program = std::vector<Action>;

/// "0F0 0SF0 0B0 0R0": chunk, act, microbatch.
std::string to_text(const Action& action);
std::string to_text(const Program& program);

/// Whether an action computes (F, B, I, W) rather than moves or sums.
bool computes(Act act);

/// The pipeline a program runs in. Chunk c of stage s is virtual stage c * stages + s: the chain of chunks
/// goes round the stages, so that the last stage sends to the first one's next chunk. One stage has one
/// chunk.
struct PipelineShape {
  int stages = 1, microbatches = 1, chunks = 1;
  int virtual_stages() const { return stages * chunks; }
  int virtual_stage(int stage, int chunk) const { return chunk * stages + stage; }
};

/// The other end of a transfer: the stage there and the receive (send) that meets this send (receive).
struct FarEnd {
  int stage = 0;
  Action action;
};
/// Nothing where the chain ends (forward before the first virtual stage or behind the last one), on one stage
/// and for an action that is no transfer.
std::optional<FarEnd> far_end(const PipelineShape& shape, int stage, const Action& action);

}  // namespace dew
