#include "tensor/allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string>

#include "base/check.h"
#include "base/text.h"

namespace dew {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

std::string_view name_of(Owner owner) {
  switch (owner) {
    case Owner::kWeights:
      return "weights";
    case Owner::kGradients:
      return "gradients";
    case Owner::kOptimizer:
      return "optimizer";
    case Owner::kEma:
      return "ema";
    case Owner::kActivations:
      return "activations";
    case Owner::kGathered:
      return "gathered";
    case Owner::kBuffers:
      return "buffers";
  }
  throw Error("unknown owner");
}

Allocator::Allocator(Device device) : device_(device) {
  DEW_CHECK(device.kind != Device::Kind::kCuda, device.index);
}

Allocator::~Allocator() {
  release_cached();
}

// Classes are at most an eighth apart: a slightly different request still finds a cached block.
std::size_t Allocator::size_class(std::size_t bytes) {
  if (bytes <= 1024) return round_up(bytes, kAlignment);
  const std::size_t step = std::bit_floor(bytes) / 8;
  return round_up(bytes, std::max(step, kAlignment));
}

void* Allocator::from_system(std::size_t bytes, Owner owner) {
  ++system_allocations_;
  if (device_.is_meta()) return nullptr;
  const std::size_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
  void* block = std::aligned_alloc(alignment, round_up(bytes, alignment));
  if (block == nullptr) {
    release_cached();
    block = std::aligned_alloc(alignment, round_up(bytes, alignment));
  }
  if (block == nullptr) throw Error(refusal(bytes, owner));
  if (bytes >= kHugePage) madvise(block, bytes, MADV_HUGEPAGE);  // fewer page faults; a refusal costs nothing
  return block;
}

void Allocator::release_cached() {
  for (auto& [size, blocks] : cached_) {
    for (void* block : blocks) std::free(block);
    use_.reserved -= static_cast<std::int64_t>(size * blocks.size());
    blocks.clear();
  }
}

std::string Allocator::refusal(std::size_t bytes, Owner owner) const {
  std::string held;
  for (std::size_t i = 0; i < kOwnerCount; ++i)
    if (use_.live[i] > 0)
      held += format(" %s %s", std::string(name_of(static_cast<Owner>(i))).c_str(),
                     format_bytes(static_cast<double>(use_.live[i])).c_str());
  return format("out of memory: asked for %s for %s; in use:%s; reserved %s",
                format_bytes(static_cast<double>(bytes)).c_str(), std::string(name_of(owner)).c_str(),
                held.empty() ? " nothing" : held.c_str(),
                format_bytes(static_cast<double>(use_.reserved)).c_str());
}

void* Allocator::allocate(std::size_t bytes, Owner owner) {
  if (bytes == 0) return nullptr;
  const std::size_t size = size_class(bytes);
  std::vector<void*>& blocks = cached_[size];
  void* block = nullptr;
  if (!blocks.empty()) {
    block = blocks.back();
    blocks.pop_back();
  } else {
    block = from_system(size, owner);
    use_.reserved += static_cast<std::int64_t>(size);
  }
  const std::size_t at = static_cast<std::size_t>(owner);
  use_.live[at] += static_cast<std::int64_t>(size);
  use_.peak[at] = std::max(use_.peak[at], use_.live[at]);
  use_.total_live += static_cast<std::int64_t>(size);
  if (use_.total_live > use_.total_peak) {
    use_.total_peak = use_.total_live;
    use_.at_total_peak = use_.live;
  }
  return block;
}

void Allocator::free(void* block, std::size_t bytes, Owner owner) noexcept {
  if (bytes == 0) return;
  const std::size_t size = size_class(bytes);
  use_.live[static_cast<std::size_t>(owner)] -= static_cast<std::int64_t>(size);
  use_.total_live -= static_cast<std::int64_t>(size);
  cached_[size].push_back(block);
}

void Allocator::reset_peaks() {
  use_.peak = use_.live;
  use_.at_total_peak = use_.live;
  use_.total_peak = use_.total_live;
}

}  // namespace dew
