// A caching pool of one device with byte counters by owner. Freed blocks are kept for requests of the same
// size class, so that a steady step asks the system for nothing. A meta pool counts the same bytes and holds
// none. Used from one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tensor/device.h"

namespace dew {

/// What a tensor's bytes are for: the rows of the memory plan.
enum class Owner : std::uint8_t { kWeights, kGradients, kOptimizer, kEma, kActivations, kGathered, kBuffers };
inline constexpr std::size_t kOwnerCount = 7;

/// "weights", "gradients", ...
std::string_view name_of(Owner owner);

/// Bytes in use, by owner and in all. `peak` of an owner is that owner's own peak; `total_peak` is that of
/// the sum.
struct MemoryUse {
  std::array<std::int64_t, kOwnerCount> live{};
  std::array<std::int64_t, kOwnerCount> peak{};
  std::array<std::int64_t, kOwnerCount> at_total_peak{};  ///< by owner, at the moment of the total's peak
  std::int64_t total_live = 0;
  std::int64_t total_peak = 0;
  std::int64_t reserved = 0;  ///< bytes taken from the system: live blocks and cached ones
};

class Allocator {
 public:
  explicit Allocator(Device device);
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;
  ~Allocator();

  Device device() const { return device_; }

  /// A block of at least `bytes`, aligned to 64 bytes; null on a meta device or for 0 bytes.
  /// Throws Error naming what was asked, for whom, and what is held by whom, when the system refuses.
  void* allocate(std::size_t bytes, Owner owner);
  void free(void* block, std::size_t bytes, Owner owner) noexcept;

  const MemoryUse& use() const { return use_; }
  /// Number of requests that had to go to the system.
  std::int64_t system_allocations() const { return system_allocations_; }
  /// Forgets the peaks: they become what is live now.
  void reset_peaks();

 private:
  static std::size_t size_class(std::size_t bytes);
  void* from_system(std::size_t bytes, Owner owner);
  void release_cached();
  std::string refusal(std::size_t bytes, Owner owner) const;

  Device device_;
  std::unordered_map<std::size_t, std::vector<void*>> cached_;  ///< by size class
  MemoryUse use_;
  std::int64_t system_allocations_ = 0;
};

}  // namespace dew
