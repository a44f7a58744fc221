// Activations and their gradients between neighbouring stages of the pipeline.
#pragma once

#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "comm/mesh.h"
#include "train/chain_survey.h"

namespace dew {

enum class Direction : std::uint8_t { kForward, kBackward };

/// Sends never wait; a receive is posted early and waited for where its values are taken. Messages between
/// two ranks match in the order in which both sides post them, which is the order of their programs.
class StageTransfers {
 public:
  StageTransfers(const Mesh& mesh, Stream& stream) : mesh_(mesh), stream_(stream) {}

  /// Activations go to the next stage, gradients to the previous one, round the ends. Keeps the tensors until
  /// they are sent.
  void send(Direction direction, std::vector<Tensor> values);
  /// Posts the receive of what the stage before (after, for gradients) sends; `boundary` says the shapes.
  void post(Direction direction, int chunk, int microbatch, std::span<const Boundary> boundary);
  /// Waits for what was posted under this name.
  std::vector<Tensor> take(Direction direction, int chunk, int microbatch);
  /// Frees what has been sent by now.
  void reap();
  /// Waits until everything is sent. Nothing may be posted and not taken.
  void finish();

 private:
  struct Incoming {
    std::vector<Tensor> values;
    Ticket ticket;
  };
  int neighbour(bool next) const;
  Communicator& group() const { return mesh_.along(Axis::kStage); }

  const Mesh& mesh_;
  Stream& stream_;
  std::map<std::tuple<Direction, int, int>, Incoming> incoming_;  ///< by direction, chunk, microbatch
  std::vector<Ticket> sending_;
};

}  // namespace dew
