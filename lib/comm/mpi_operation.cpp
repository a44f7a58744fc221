#include "comm/mpi_operation.h"

#include <algorithm>
#include <utility>

#include "base/timer.h"

namespace dew {

MpiOperation::~MpiOperation() {
  // Dropped in flight, which only an exception does: MPI may still write into the tensors, so they are never
  // freed.
  if (!done_) new std::vector<Tensor>(std::move(tensors_));
}

bool MpiOperation::advance() {
  if (next_phase_ < phases_.size()) {
    running_ = true;
    phases_[next_phase_++](requests_);
    running_ = false;
    return true;
  }
  done_ = true;
  phases_.clear();
  tensors_.clear();
  return false;
}

bool MpiOperation::test() {
  if (running_) return false;  // polled from within its own phase or wait
  while (!done_ && requests_.test()) advance();
  return done_;
}

void MpiOperation::finish(Stream& stream) {
  while (!done_) {
    if (!requests_.test()) {
      const KernelScope scope(stream, KernelKind::kCommunication, 0, 0);
      const ScopeTimer timer(traffic_.wait_seconds);
      // The others advance too: a peer may wait for one of their later phases before it comes to this one.
      // Not this one: its sums are no waiting.
      running_ = true;
      while (!requests_.test()) progress_.poll();
      running_ = false;
    }
    advance();
  }
}

void MpiProgress::poll() {
  if (polling_) return;
  polling_ = true;
  std::erase_if(operations_, [](const std::weak_ptr<PendingOperation>& weak) {
    const std::shared_ptr<PendingOperation> operation = weak.lock();
    return operation == nullptr || operation->test();
  });
  polling_ = false;
}

}  // namespace dew
