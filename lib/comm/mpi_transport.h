// Bytes between the ranks of one group by non-blocking MPI calls, in pieces that an MPI count can hold. Knows
// nothing of tensors. Internal to the MPI communicator and its test.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/host_group.h"

namespace dew {

/// The requests of one step of an operation. Dropped while in flight they are left to MPI.
class MpiRequests {
 public:
  MpiRequests();
  MpiRequests(const MpiRequests&) = delete;
  MpiRequests& operator=(const MpiRequests&) = delete;
  ~MpiRequests();
  bool test();  ///< lets MPI advance; true when nothing is in flight

 private:
  friend class MpiTransport;
  struct State;
  std::unique_ptr<State> state_;
};

/// Collectives must start in the same order on every rank. Buffers must live until the requests are done.
class MpiTransport {
 public:
  /// The most bytes that one MPI call moves on a rank. MPI counts are int, and Open MPI multiplies count by
  /// rank in int.
  static constexpr std::int64_t kMessageLimit = std::int64_t{1} << 30;

  MpiTransport(HostGroup group, std::int64_t message_limit);

  /// recv [size * bytes]: every rank's `bytes` in rank order. `send` null: this rank's are in place.
  void all_gather(const void* send, void* recv, std::int64_t bytes, MpiRequests& requests) const;
  /// Block r of send [size * bytes] goes to rank r; block r of recv comes from it.
  void all_to_all(const void* send, void* recv, std::int64_t bytes, MpiRequests& requests) const;
  void broadcast(void* block, std::int64_t bytes, int root, MpiRequests& requests) const;
  /// Point to point: messages of a pair with the same tag match in order. Both sides give the same number of
  /// bytes.
  void send(const void* block, std::int64_t bytes, int peer, int tag, MpiRequests& requests) const;
  void recv(void* block, std::int64_t bytes, int peer, int tag, MpiRequests& requests) const;

  const HostGroup& group() const { return group_; }

 private:
  HostGroup group_;
  std::int64_t limit_;
};

}  // namespace dew
