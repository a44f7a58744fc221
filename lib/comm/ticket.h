// The handle of a started operation between ranks.
#pragma once

#include <memory>

#include "tensor/stream.h"

namespace dew {

/// An operation in flight, as its transport sees it. Owns the tensors it reads and writes.
class PendingOperation {
 public:
  virtual ~PendingOperation() = default;
  virtual bool test() = 0;           ///< advances without blocking; true once done
  virtual void finish(Stream&) = 0;  ///< blocks the host (MPI) or the stream (NCCL) until done
};

/// Owns its tensors until waited for, so that memory cannot be recycled under it. An empty ticket is done.
class [[nodiscard]] Ticket {
 public:
  Ticket() = default;
  explicit Ticket(std::shared_ptr<PendingOperation> pending) : pending_(std::move(pending)) {}

  /// Results are valid for work enqueued on the stream after this call.
  void wait(Stream& stream) {
    if (pending_) pending_->finish(stream);
    pending_.reset();
  }
  bool done() { return !pending_ || pending_->test(); }

 private:
  std::shared_ptr<PendingOperation> pending_;
};

}  // namespace dew
