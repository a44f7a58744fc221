#include "comm/communicator.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/philox.h"
#include "base/text.h"
#include "comm/reduce_plan.h"

namespace dew {

namespace {

enum Operation : std::uint8_t { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kBroadcast };
constexpr std::array<const char*, 5> kOperationNames{"all_reduce", "all_gather", "reduce_scatter",
                                                     "all_to_all_rows", "broadcast"};

bool is_float(const Tensor& tensor) {
  return tensor.dtype() == DType::kF64 || tensor.dtype() == DType::kF32 || tensor.dtype() == DType::kBf16;
}

std::int64_t bytes_of(const Tensor& tensor) {
  return static_cast<std::int64_t>(tensor.bytes());
}

// Bytes of one row of dim 0.
std::int64_t row_bytes(const Tensor& tensor) {
  std::int64_t bytes = static_cast<std::int64_t>(size_of(tensor.dtype()));
  for (int d = 1; d < tensor.shape().dims(); ++d) bytes *= tensor.dim(d);
  return bytes;
}

bool overlap(const Tensor& a, const Tensor& b) {
  const auto* first = static_cast<const char*>(a.raw());
  const auto* second = static_cast<const char*>(b.raw());
  if (first == nullptr || second == nullptr || a.numel() == 0 || b.numel() == 0) return false;
  const std::less<const char*> before;
  return before(first, second + b.bytes()) && before(second, first + a.bytes());
}

std::int64_t total(std::span<const std::int64_t> rows) {
  return std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
}

}  // namespace

Ticket Communicator::all_reduce(std::span<const Tensor> tensors, Stream& stream) {
  for (const Tensor& tensor : tensors) {
    DEW_CHECK(tensor.defined());
    DEW_CHECK(is_float(tensor) || tensor.dtype() == DType::kI64, name_of(tensor.dtype()));
    const auto element = static_cast<std::int64_t>(size_of(tensor.dtype()));
    const ReducePlan plan(tensor.numel(), element, size_);
    note(kAllReduce, tensor.dtype(), bytes_of(tensor), plan.sent_elements(size_) * element);
  }
  return start_all_reduce(tensors, stream);
}

Ticket Communicator::all_gather(std::span<const Transfer> transfers, Stream& stream) {
  for (const auto& [send, recv] : transfers) {
    DEW_CHECK(send.defined() && recv.defined());
    DEW_CHECK(send.dtype() == recv.dtype(), name_of(send.dtype()), name_of(recv.dtype()));
    DEW_CHECK(recv.numel() == size_ * send.numel(), recv.shape(), send.shape(), size_);
    if (overlap(send, recv)) {
      const char* own = static_cast<const char*>(recv.raw()) + static_cast<std::size_t>(rank_) * send.bytes();
      DEW_CHECK(send.raw() == own, "send overlaps recv but is not this rank's place in it");
    }
    note(kAllGather, send.dtype(), bytes_of(recv), (size_ - 1) * bytes_of(send));
  }
  return start_all_gather(transfers, stream);
}

Ticket Communicator::reduce_scatter(std::span<const Transfer> transfers, Stream& stream) {
  for (const auto& [send, recv] : transfers) {
    DEW_CHECK(send.defined() && recv.defined());
    DEW_CHECK(is_float(send) && send.dtype() == recv.dtype(), name_of(send.dtype()), name_of(recv.dtype()));
    DEW_CHECK(send.numel() == size_ * recv.numel(), send.shape(), recv.shape(), size_);
    DEW_CHECK(!overlap(send, recv), "recv overlaps send");
    note(kReduceScatter, send.dtype(), bytes_of(send), (size_ - 1) * bytes_of(recv));
  }
  return start_reduce_scatter(transfers, stream);
}

Ticket Communicator::all_to_all_rows(const Transfer& transfer, std::span<const std::int64_t> send_rows,
                                     std::span<const std::int64_t> recv_rows, Stream& stream) {
  const auto& [send, recv] = transfer;
  DEW_CHECK(send.defined() && recv.defined() && send.shape().dims() > 0 && recv.shape().dims() > 0);
  DEW_CHECK(send.dtype() == recv.dtype(), name_of(send.dtype()), name_of(recv.dtype()));
  DEW_CHECK(row_bytes(send) == row_bytes(recv), send.shape(), recv.shape());
  DEW_CHECK(!overlap(send, recv), "recv overlaps send");
  const auto ranks = static_cast<std::size_t>(size_), own = static_cast<std::size_t>(rank_);
  DEW_CHECK(send_rows.size() == ranks && recv_rows.size() == ranks, send_rows.size(), recv_rows.size(),
            size_);
  for (std::size_t r = 0; r < ranks; ++r) DEW_CHECK(send_rows[r] >= 0 && recv_rows[r] >= 0, r);
  DEW_CHECK(total(send_rows) == send.dim(0), total(send_rows), send.shape());
  DEW_CHECK(total(recv_rows) == recv.dim(0), total(recv_rows), recv.shape());
  DEW_CHECK(send_rows[own] == recv_rows[own], send_rows[own], recv_rows[own]);
  // Row counts differ between ranks, so the hash takes the bytes of one row.
  note(kAllToAll, send.dtype(), row_bytes(send), (total(send_rows) - send_rows[own]) * row_bytes(send));
  return start_all_to_all_rows(transfer, send_rows, recv_rows, stream);
}

Ticket Communicator::broadcast(std::span<const Tensor> tensors, int root, Stream& stream) {
  DEW_CHECK(0 <= root && root < size_, root, size_);
  for (const Tensor& tensor : tensors) {
    DEW_CHECK(tensor.defined());
    note(kBroadcast, tensor.dtype(), bytes_of(tensor), rank_ == root ? (size_ - 1) * bytes_of(tensor) : 0);
  }
  return start_broadcast(tensors, root, stream);
}

Ticket Communicator::exchange(std::span<const PeerTransfer> transfers, Stream& stream) {
  // Ranks rightly differ here, so nothing goes into the hash.
  for (const PeerTransfer& transfer : transfers) {
    DEW_CHECK(transfer.tensor.defined());
    DEW_CHECK(0 <= transfer.peer && transfer.peer < size_, transfer.peer, size_);
    ++traffic_.calls;
    if (transfer.kind == PeerTransfer::Kind::kSend && transfer.peer != rank_) {
      traffic_.bytes += bytes_of(transfer.tensor);
    }
  }
  return start_exchange(transfers, stream);
}

void Communicator::note(std::uint8_t operation, DType dtype, std::int64_t bytes, std::int64_t sent) {
  ++traffic_.calls;
  traffic_.bytes += sent;
  const std::uint64_t kind = std::uint64_t{operation} << 8 | static_cast<std::uint64_t>(dtype);
  call_hash_ = mix64(mix64(call_hash_ + kind + 1) + static_cast<std::uint64_t>(bytes));
  recent_[static_cast<std::size_t>(call_count_) % recent_.size()] = {operation, dtype, bytes};
  ++call_count_;
}

std::string Communicator::recent_calls() const {
  std::string text;
  const auto kept = static_cast<std::int64_t>(recent_.size());
  for (std::int64_t i = std::max<std::int64_t>(0, call_count_ - kept); i < call_count_; ++i) {
    const Call& call = recent_[static_cast<std::size_t>(i % kept)];
    text += format("call %lld: %s %s, %lld bytes\n", static_cast<long long>(i + 1),
                   kOperationNames[call.operation], name_of(call.dtype).data(),
                   static_cast<long long>(call.bytes));
  }
  return text;
}

void check_same_calls(const Communicator& communicator, const HostGroup& host) {
  DEW_CHECK(host.size() == communicator.size() && host.rank() == communicator.rank(), host.size(),
            host.rank());
  const auto hash = static_cast<std::int64_t>(communicator.call_hash());
  std::array<std::int64_t, 1> low{hash}, high{hash};
  host.min(low);
  host.max(high);
  if (low == high) return;

  const std::vector<std::string> hashes = host.gather(std::to_string(hash));
  const std::vector<std::string> calls = host.gather(communicator.recent_calls());
  const auto other = static_cast<std::size_t>(
      std::find_if(hashes.begin(), hashes.end(), [&](const std::string& h) { return h != hashes[0]; }) -
      hashes.begin());
  throw SharedError("group " + communicator.name() + ": ranks 0 and " + std::to_string(other) +
                    " called different operations\nrank 0:\n" + calls[0] + "rank " + std::to_string(other) +
                    ":\n" + calls[other]);
}

}  // namespace dew
