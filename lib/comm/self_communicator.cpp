// A group of one rank, and a group of which only the counts matter.
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/reduce_plan.h"
#include "tensor/copy.h"

namespace dew {

namespace {

class SelfCommunicator final : public Communicator {
 public:
  explicit SelfCommunicator(std::string name) : Communicator(std::move(name), 0, 1) {}

 protected:
  Ticket start_all_reduce(std::span<const Tensor>, Stream&) override { return {}; }

  Ticket start_all_gather(std::span<const Transfer> transfers, Stream& stream) override {
    for (const Transfer& transfer : transfers) copy_across(transfer, stream);
    return {};
  }

  Ticket start_reduce_scatter(std::span<const Transfer> transfers, Stream& stream) override {
    for (const Transfer& transfer : transfers) copy_across(transfer, stream);
    return {};
  }

  Ticket start_all_to_all_rows(const Transfer& transfer, std::span<const std::int64_t>,
                               std::span<const std::int64_t>, Stream& stream) override {
    copy_across(transfer, stream);
    return {};
  }

  Ticket start_broadcast(std::span<const Tensor>, int, Stream&) override { return {}; }

  Ticket start_exchange(std::span<const PeerTransfer> transfers, Stream& stream) override {
    std::vector<Tensor> sends, recvs;
    for (const PeerTransfer& transfer : transfers) {
      (transfer.kind == PeerTransfer::Kind::kSend ? sends : recvs).push_back(transfer.tensor);
    }
    DEW_CHECK(sends.size() == recvs.size(), "a rank alone must receive what it sends", sends.size(),
              recvs.size());
    for (std::size_t i = 0; i < sends.size(); ++i) copy_across({sends[i], recvs[i]}, stream);
    return {};
  }

 private:
  static void copy_across(const Transfer& transfer, Stream& stream) {
    const bool in_place = transfer.send.raw() != nullptr && transfer.send.raw() == transfer.recv.raw();
    if (!in_place) copy(stream, transfer.send, transfer.recv);
  }
};

// Holds what the real operation would hold, until waited for.
class DryOperation final : public PendingOperation {
 public:
  void keep(Tensor tensor) { tensors_.push_back(std::move(tensor)); }
  bool test() override { return true; }
  void finish(Stream&) override { tensors_.clear(); }

 private:
  std::vector<Tensor> tensors_;
};

class DryCommunicator final : public Communicator {
 public:
  DryCommunicator(std::string name, int rank, int size) : Communicator(std::move(name), rank, size) {
    DEW_CHECK(0 <= rank && rank < size, rank, size);
  }

 protected:
  Ticket start_all_reduce(std::span<const Tensor> tensors, Stream& stream) override {
    auto operation = start(stream);
    for (const Tensor& tensor : tensors) {
      const auto element = static_cast<std::int64_t>(size_of(tensor.dtype()));
      const ReducePlan plan(tensor.numel(), element, size());
      operation->keep(tensor);
      operation->keep(
          Tensor::empty({plan.scratch_elements(size())}, tensor.dtype(), stream, Owner::kBuffers));
    }
    return Ticket(std::move(operation));
  }

  Ticket start_all_gather(std::span<const Transfer> transfers, Stream& stream) override {
    auto operation = start(stream);
    for (const Transfer& transfer : transfers) keep_both(*operation, transfer);
    return Ticket(std::move(operation));
  }

  Ticket start_reduce_scatter(std::span<const Transfer> transfers, Stream& stream) override {
    auto operation = start(stream);
    for (const Transfer& transfer : transfers) {
      keep_both(*operation, transfer);
      operation->keep(Tensor::empty({transfer.send.numel()}, transfer.send.dtype(), stream, Owner::kBuffers));
    }
    return Ticket(std::move(operation));
  }

  Ticket start_all_to_all_rows(const Transfer& transfer, std::span<const std::int64_t>,
                               std::span<const std::int64_t>, Stream& stream) override {
    auto operation = start(stream);
    keep_both(*operation, transfer);
    return Ticket(std::move(operation));
  }

  Ticket start_broadcast(std::span<const Tensor> tensors, int, Stream& stream) override {
    auto operation = start(stream);
    for (const Tensor& tensor : tensors) operation->keep(tensor);
    return Ticket(std::move(operation));
  }

  Ticket start_exchange(std::span<const PeerTransfer> transfers, Stream& stream) override {
    auto operation = start(stream);
    for (const PeerTransfer& transfer : transfers) operation->keep(transfer.tensor);
    return Ticket(std::move(operation));
  }

 private:
  // Tensors with memory would come back without their sums.
  static std::shared_ptr<DryOperation> start(Stream& stream) {
    DEW_CHECK(stream.device().is_meta(), "a dry group moves nothing: it takes meta tensors only");
    return std::make_shared<DryOperation>();
  }

  static void keep_both(DryOperation& operation, const Transfer& transfer) {
    operation.keep(transfer.send);
    operation.keep(transfer.recv);
  }
};

}  // namespace

std::unique_ptr<Communicator> make_self_communicator(std::string name) {
  return std::make_unique<SelfCommunicator>(std::move(name));
}

std::unique_ptr<Communicator> make_dry_communicator(std::string name, int rank, int size) {
  if (size == 1) return make_self_communicator(std::move(name));
  return std::make_unique<DryCommunicator>(std::move(name), rank, size);
}

}  // namespace dew
