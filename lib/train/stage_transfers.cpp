#include "train/stage_transfers.h"

#include <algorithm>
#include <utility>

namespace dew {

int StageTransfers::neighbour(bool next) const {
  const int stages = mesh_.extent(Axis::kStage), stage = mesh_.coord(Axis::kStage);
  return (stage + (next ? 1 : stages - 1)) % stages;
}

void StageTransfers::send(Direction direction, std::vector<Tensor> values) {
  reap();
  std::vector<PeerTransfer> transfers;
  for (Tensor& value : values)
    if (value.numel() > 0)
      transfers.push_back(
          {PeerTransfer::Kind::kSend, neighbour(direction == Direction::kForward), std::move(value)});
  if (!transfers.empty()) sending_.push_back(group().exchange(transfers, stream_));
}

void StageTransfers::post(Direction direction, int chunk, int microbatch,
                          std::span<const Boundary> boundary) {
  Incoming incoming;
  std::vector<PeerTransfer> transfers;
  for (const Boundary& value : boundary) {
    incoming.values.push_back(Tensor::empty(value.shape, value.dtype, stream_, Owner::kActivations));
    if (value.shape.numel() > 0)
      transfers.push_back(
          {PeerTransfer::Kind::kRecv, neighbour(direction == Direction::kBackward), incoming.values.back()});
  }
  if (!transfers.empty()) incoming.ticket = group().exchange(transfers, stream_);
  const bool is_new = incoming_.emplace(std::tuple{direction, chunk, microbatch}, std::move(incoming)).second;
  DEW_CHECK(is_new, "posted twice", chunk, microbatch);
}

std::vector<Tensor> StageTransfers::take(Direction direction, int chunk, int microbatch) {
  auto found = incoming_.extract(std::tuple{direction, chunk, microbatch});
  DEW_CHECK(!found.empty(), "taken and not posted", chunk, microbatch);
  found.mapped().ticket.wait(stream_);
  return std::move(found.mapped().values);
}

void StageTransfers::reap() {
  std::erase_if(sending_, [](Ticket& ticket) { return ticket.done(); });
}

void StageTransfers::finish() {
  DEW_CHECK(incoming_.empty(), incoming_.size());
  for (Ticket& ticket : sending_) ticket.wait(stream_);
  sending_.clear();
}

}  // namespace dew
