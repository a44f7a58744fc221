#include "comm/mpi_communicator.h"

#include <cstring>
#include <utility>
#include <vector>

#include "comm/mpi_operation.h"
#include "comm/mpi_transport.h"
#include "comm/reduce_plan.h"
#include "kernels/reduce.h"

namespace dew {

namespace {

// Second phases start when the first is done, in an order that may differ between ranks: each all-reduce has
// its own tag.
constexpr int kExchangeTag = 0, kRowsTag = 1, kFirstPartsTag = 2, kPartsTags = 16384;

std::int64_t bytes_of(const Tensor& tensor) {
  return static_cast<std::int64_t>(tensor.bytes());
}

// Block r of `count` equal blocks, for each r.
std::vector<Tensor> blocks_of(const Tensor& tensor, int count) {
  std::vector<Tensor> blocks;
  const std::int64_t size = tensor.numel() / count;
  for (int r = 0; r < count; ++r) blocks.push_back(tensor.range(r * size, (r + 1) * size));
  return blocks;
}

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(std::string name, HostGroup group, MpiProgress& progress, std::int64_t message_limit)
      : Communicator(std::move(name), group.rank(), group.size()),
        transport_(std::make_shared<MpiTransport>(std::move(group), message_limit)),
        progress_(progress) {}

 protected:
  Ticket start_all_reduce(std::span<const Tensor> tensors, Stream& stream) override;
  Ticket start_all_gather(std::span<const Transfer> transfers, Stream& stream) override;
  Ticket start_reduce_scatter(std::span<const Transfer> transfers, Stream& stream) override;
  Ticket start_all_to_all_rows(const Transfer& transfer, std::span<const std::int64_t> send_rows,
                               std::span<const std::int64_t> recv_rows, Stream& stream) override;
  Ticket start_broadcast(std::span<const Tensor> tensors, int root, Stream& stream) override;
  Ticket start_exchange(std::span<const PeerTransfer> transfers, Stream& stream) override;

 private:
  struct Reduction {
    Tensor head, tail;              // of the tensor: size * part elements, and the rest
    Tensor head_terms, tail_terms;  // what came from every rank
  };

  std::shared_ptr<MpiOperation> begin(Stream& stream);
  Ticket started(std::shared_ptr<MpiOperation> operation);
  Reduction start_reduction(const Tensor& tensor, MpiOperation& operation, Stream& stream);
  void spread_parts(const Reduction& reduction, int tag, MpiRequests& requests) const;

  std::shared_ptr<MpiTransport> transport_;
  MpiProgress& progress_;
  std::int64_t reductions_ = 0;
};

std::shared_ptr<MpiOperation> MpiCommunicator::begin(Stream& stream) {
  DEW_CHECK(stream.device().kind == Device::Kind::kCpu, "MPI moves host tensors");
  return std::make_shared<MpiOperation>(progress_, mutable_traffic());
}

Ticket MpiCommunicator::started(std::shared_ptr<MpiOperation> operation) {
  progress_.add(operation);
  return Ticket(std::move(operation));
}

MpiCommunicator::Reduction MpiCommunicator::start_reduction(const Tensor& tensor, MpiOperation& operation,
                                                            Stream& stream) {
  const std::int64_t n = tensor.numel();
  const ReducePlan plan(n, static_cast<std::int64_t>(size_of(tensor.dtype())), size());
  const Tensor scratch =
      Tensor::empty({plan.scratch_elements(size())}, tensor.dtype(), stream, Owner::kBuffers);
  const std::int64_t head = plan.part * size();
  Reduction reduction{tensor.range(0, head), tensor.range(head, n), scratch.range(0, head),
                      scratch.range(head, scratch.numel())};
  operation.keep(tensor);
  operation.keep(scratch);
  if (head > 0) {
    transport_->all_to_all(reduction.head.raw(), reduction.head_terms.raw(),
                           bytes_of(reduction.head) / size(), operation.requests());
  }
  if (plan.tail > 0) {
    transport_->all_gather(reduction.tail.raw(), reduction.tail_terms.raw(), bytes_of(reduction.tail),
                           operation.requests());
  }
  return reduction;
}

// This rank's part of the sum goes to everyone, everyone's to its place.
void MpiCommunicator::spread_parts(const Reduction& reduction, int tag, MpiRequests& requests) const {
  const std::vector<Tensor> parts = blocks_of(reduction.head, size());
  const Tensor& own = parts[static_cast<std::size_t>(rank())];
  for (int step = 1; step < size(); ++step) {
    // Everyone starts with its next neighbour, so that no rank is sent to by all at once.
    const int to = (rank() + step) % size(), from = (rank() - step + size()) % size();
    const Tensor& part = parts[static_cast<std::size_t>(from)];
    transport_->recv(part.raw(), bytes_of(part), from, tag, requests);
    transport_->send(own.raw(), bytes_of(own), to, tag, requests);
  }
}

Ticket MpiCommunicator::start_all_reduce(std::span<const Tensor> tensors, Stream& stream) {
  auto operation = begin(stream);
  std::vector<Reduction> reductions;
  for (const Tensor& tensor : tensors) reductions.push_back(start_reduction(tensor, *operation, stream));
  const int tag = kFirstPartsTag + static_cast<int>(reductions_++ % kPartsTags);
  operation->then([this, tag, &stream, reductions = std::move(reductions)](MpiRequests& requests) {
    for (const Reduction& reduction : reductions) {
      if (reduction.tail.numel() > 0) {
        kernels::sum_in_order(stream, blocks_of(reduction.tail_terms, size()), reduction.tail, false);
      }
      if (reduction.head.numel() == 0) continue;
      const Tensor own = blocks_of(reduction.head, size())[static_cast<std::size_t>(rank())];
      kernels::sum_in_order(stream, blocks_of(reduction.head_terms, size()), own, false);
      spread_parts(reduction, tag, requests);
    }
  });
  return started(std::move(operation));
}

Ticket MpiCommunicator::start_all_gather(std::span<const Transfer> transfers, Stream& stream) {
  auto operation = begin(stream);
  for (const auto& [send, recv] : transfers) {
    if (send.numel() == 0) continue;
    operation->keep(send);
    operation->keep(recv);
    const Tensor own = blocks_of(recv, size())[static_cast<std::size_t>(rank())];
    const bool in_place = own.raw() == send.raw();
    transport_->all_gather(in_place ? nullptr : send.raw(), recv.raw(), bytes_of(send),
                           operation->requests());
  }
  return started(std::move(operation));
}

Ticket MpiCommunicator::start_reduce_scatter(std::span<const Transfer> transfers, Stream& stream) {
  auto operation = begin(stream);
  std::vector<Transfer> sums;  // terms [size * n] to result [n]
  for (const auto& [send, recv] : transfers) {
    if (recv.numel() == 0) continue;
    const Tensor terms = Tensor::empty({send.numel()}, send.dtype(), stream, Owner::kBuffers);
    for (const Tensor& tensor : {send, recv, terms}) operation->keep(tensor);
    transport_->all_to_all(send.raw(), terms.raw(), bytes_of(recv), operation->requests());
    sums.push_back({terms, recv});
  }
  operation->then([this, &stream, sums = std::move(sums)](MpiRequests&) {
    for (const auto& [terms, result] : sums) {
      kernels::sum_in_order(stream, blocks_of(terms, size()), result, false);
    }
  });
  return started(std::move(operation));
}

// Point to point, because a rank knows only its own counts and all ranks of a collective would have to agree
// on pieces.
Ticket MpiCommunicator::start_all_to_all_rows(const Transfer& transfer,
                                              std::span<const std::int64_t> send_rows,
                                              std::span<const std::int64_t> recv_rows, Stream& stream) {
  auto operation = begin(stream);
  operation->keep(transfer.send);
  operation->keep(transfer.recv);
  std::int64_t sent = 0, received = 0;
  for (int r = 0; r < size(); ++r) {
    const auto i = static_cast<std::size_t>(r);
    const Tensor out = transfer.send.rows(sent, sent + send_rows[i]);
    const Tensor in = transfer.recv.rows(received, received + recv_rows[i]);
    sent += send_rows[i];
    received += recv_rows[i];
    if (r != rank()) {
      transport_->recv(in.raw(), bytes_of(in), r, kRowsTag, operation->requests());
      transport_->send(out.raw(), bytes_of(out), r, kRowsTag, operation->requests());
    } else if (out.numel() > 0) {
      std::memcpy(in.raw(), out.raw(), out.bytes());
    }
  }
  return started(std::move(operation));
}

Ticket MpiCommunicator::start_broadcast(std::span<const Tensor> tensors, int root, Stream& stream) {
  auto operation = begin(stream);
  for (const Tensor& tensor : tensors) {
    operation->keep(tensor);
    transport_->broadcast(tensor.raw(), bytes_of(tensor), root, operation->requests());
  }
  return started(std::move(operation));
}

Ticket MpiCommunicator::start_exchange(std::span<const PeerTransfer> transfers, Stream& stream) {
  auto operation = begin(stream);
  for (const auto& [kind, peer, tensor] : transfers) {
    operation->keep(tensor);
    if (kind == PeerTransfer::Kind::kRecv) {
      transport_->recv(tensor.raw(), bytes_of(tensor), peer, kExchangeTag, operation->requests());
    } else {
      transport_->send(tensor.raw(), bytes_of(tensor), peer, kExchangeTag, operation->requests());
    }
  }
  return started(std::move(operation));
}

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(std::string name, HostGroup group, MpiProgress& progress,
                                                    std::int64_t message_limit) {
  if (group.size() == 1) return make_self_communicator(std::move(name));
  return std::make_unique<MpiCommunicator>(std::move(name), std::move(group), progress, message_limit);
}

std::unique_ptr<Communicator> make_mpi_communicator(std::string name, HostGroup group,
                                                    MpiProgress& progress) {
  return make_mpi_communicator(std::move(name), std::move(group), progress, MpiTransport::kMessageLimit);
}

}  // namespace dew
