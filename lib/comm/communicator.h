// Operations on tensors between the ranks of one group. Every rank calls the same operations in the same
// order from one thread. The public calls check arguments, count traffic and keep a hash of what was called;
// transports implement the protected ones.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/host_group.h"
#include "comm/ticket.h"
#include "tensor/tensor.h"

namespace dew {

struct Transfer {
  Tensor send, recv;
};

struct PeerTransfer {
  enum class Kind : std::uint8_t { kSend, kRecv } kind = Kind::kSend;
  int peer = 0;
  Tensor tensor;
};

/// What a group moved, as this rank sent it.
struct Traffic {
  std::int64_t calls = 0;   ///< one a tensor
  std::int64_t bytes = 0;   ///< bytes this rank sent to others
  double wait_seconds = 0;  ///< host time blocked in wait
};

class Communicator {
 public:
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  /// Tickets must be waited for before.
  virtual ~Communicator() = default;
  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& name() const { return name_; }  ///< the axes: "fsdp", "replica x fsdp", "world"

  /// In place: each tensor becomes the sum over ranks, added in rank order on every rank alike. f64, f32 or
  /// i64.
  Ticket all_reduce(std::span<const Tensor> tensors, Stream& stream);
  /// recv [size * n] = every rank's send [n] in rank order. `send` may be the view of recv at this rank's
  /// place (then nothing is copied). Any dtype.
  Ticket all_gather(std::span<const Transfer> transfers, Stream& stream);
  /// recv [n] = the sum over ranks, in rank order, of their send [size * n] at this rank's place. f64 or f32.
  /// The sends must stay unchanged until the ticket is waited for; recv must not overlap send.
  Ticket reduce_scatter(std::span<const Transfer> transfers, Stream& stream);
  /// Rows of dim 0: send_rows[r] rows go to rank r, recv_rows[r] come from it, both in rank order.
  Ticket all_to_all_rows(const Transfer& transfer, std::span<const std::int64_t> send_rows,
                         std::span<const std::int64_t> recv_rows, Stream& stream);
  Ticket broadcast(std::span<const Tensor> tensors, int root, Stream& stream);
  /// One batch of point-to-point transfers; cannot deadlock within itself. Messages between a pair match in
  /// order.
  Ticket exchange(std::span<const PeerTransfer> transfers, Stream& stream);

  const Traffic& traffic() const { return traffic_; }
  void clear_traffic() { traffic_ = {}; }
  /// Hash of (operation, dtype, bytes) of every collective called so far: equal on all ranks of a group, or a
  /// fault.
  std::uint64_t call_hash() const { return call_hash_; }
  std::int64_t call_count() const { return call_count_; }
  /// The last operations called, oldest first, one a line, for the message when hashes differ.
  std::string recent_calls() const;

 protected:
  Communicator(std::string name, int rank, int size) : name_(std::move(name)), rank_(rank), size_(size) {}
  virtual Ticket start_all_reduce(std::span<const Tensor>, Stream&) = 0;
  virtual Ticket start_all_gather(std::span<const Transfer>, Stream&) = 0;
  virtual Ticket start_reduce_scatter(std::span<const Transfer>, Stream&) = 0;
  virtual Ticket start_all_to_all_rows(const Transfer&, std::span<const std::int64_t>,
                                       std::span<const std::int64_t>, Stream&) = 0;
  virtual Ticket start_broadcast(std::span<const Tensor>, int root, Stream&) = 0;
  virtual Ticket start_exchange(std::span<const PeerTransfer>, Stream&) = 0;
  Traffic& mutable_traffic() { return traffic_; }

 private:
  struct Call {
    std::uint8_t operation;
    DType dtype;
    std::int64_t bytes;
  };
  void note(std::uint8_t operation, DType dtype, std::int64_t bytes, std::int64_t sent);

  std::string name_;
  int rank_, size_;
  Traffic traffic_;
  std::uint64_t call_hash_ = 0;
  std::int64_t call_count_ = 0;
  std::array<Call, 16> recent_{};
};

/// A group of one rank: copies or nothing.
std::unique_ptr<Communicator> make_self_communicator(std::string name);
/// A group that counts traffic and moves nothing, for dry runs on meta tensors.
std::unique_ptr<Communicator> make_dry_communicator(std::string name, int rank, int size);

/// Lets all operations of the MPI communicators made from it advance: the stream's progress hook.
class MpiProgress {
 public:
  /// One pass over the operations in flight, without blocking; nothing when a pass is under way (a sum
  /// between two phases may poll too).
  void poll();
  void add(std::weak_ptr<PendingOperation> operation) { operations_.push_back(std::move(operation)); }

 private:
  std::vector<std::weak_ptr<PendingOperation>> operations_;
  bool polling_ = false;
};

/// A group over MPI with host tensors. Takes the host group over; `progress` must outlive it.
std::unique_ptr<Communicator> make_mpi_communicator(std::string name, HostGroup group, MpiProgress& progress);

/// Compares call_hash over the group (collective over `host`, the same ranks); throws Error naming the
/// operations on both sides when ranks did not call the same ones.
void check_same_calls(const Communicator& communicator, const HostGroup& host);

}  // namespace dew
