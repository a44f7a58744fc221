// An operation over MPI in one or more phases: transfers, then sums on the host, then perhaps more transfers.
// MPI advances only inside its calls, so phases advance in test() and finish(), on the thread that calls
// them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "comm/communicator.h"
#include "comm/mpi_transport.h"
#include "tensor/tensor.h"

namespace dew {

class MpiOperation final : public PendingOperation {
 public:
  /// Runs once the transfers before it are done; may start more. Holds tensors only through `keep`.
  using Phase = std::function<void(MpiRequests&)>;

  /// Both outlive the operation.
  MpiOperation(MpiProgress& progress, Traffic& traffic) : progress_(progress), traffic_(traffic) {}
  MpiOperation(const MpiOperation&) = delete;
  MpiOperation& operator=(const MpiOperation&) = delete;
  ~MpiOperation() override;

  /// Keeps a tensor until the operation is done.
  void keep(const Tensor& tensor) { tensors_.push_back(tensor); }
  void then(Phase phase) { phases_.push_back(std::move(phase)); }
  MpiRequests& requests() { return requests_; }

  bool test() override;
  void finish(Stream& stream) override;

 private:
  bool advance();  ///< runs the next phase after the transfers; false when there is none, and the operation
                   ///< is done

  MpiProgress& progress_;
  Traffic& traffic_;
  std::vector<Tensor> tensors_;
  std::vector<Phase> phases_;
  std::size_t next_phase_ = 0;
  MpiRequests requests_;
  bool running_ = false, done_ = false;
};

}  // namespace dew
