// Host-side agreement between ranks, through MPI whatever the device: small values, text, barriers. Never for
// tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dew {

class HostGroup {
 public:
  /// A group of this process alone; needs no MPI.
  static HostGroup alone();
  HostGroup(HostGroup&&) noexcept;
  HostGroup& operator=(HostGroup&&) noexcept;
  ~HostGroup();

  int rank() const;
  int size() const;

  /// All of these are collective over the group and block the host. Sums are taken in rank order: every rank
  /// gets the same bits.
  void sum(std::span<double> values) const;
  void sum(std::span<std::int64_t> values) const;  ///< modulo 2^64
  void max(std::span<std::int64_t> values) const;
  void min(std::span<std::int64_t> values) const;
  std::string broadcast(std::string text, int root) const;
  /// Every rank's text, in rank order, on every rank.
  std::vector<std::string> gather(const std::string& text) const;
  void barrier() const;

  /// The same ranks with their own communicator.
  HostGroup duplicate() const;
  /// The ranks of this group that call with the same colour, ordered by key.
  HostGroup split(int colour, int key) const;
  /// The ranks of this group on the same node.
  HostGroup split_by_node() const;

  /// Pointer to the library's own communicator (const MPI_Comm*), for libraries that need one; null for
  /// `alone`.
  const void* native() const;

 private:
  struct State;
  explicit HostGroup(std::unique_ptr<State> state);
  static HostGroup world();  ///< all ranks of the job; MPI must have started
  std::unique_ptr<State> state_;
  friend class MpiEnv;
};

}  // namespace dew
