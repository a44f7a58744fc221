// What kernels did: calls, seconds, FLOP and bytes by kind. FLOP and bytes are always counted (the dry run
// reads them); seconds only while `timed`, since a clock read per kernel is not free.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dew {

enum class KernelKind : std::uint8_t {
  kGemm,
  kAttention,
  kNorm,
  kRope,
  kActivation,
  kEmbedding,
  kCrossEntropy,
  kPointwise,
  kOptimizer,
  kReduce,
  kRandom,
  kCommunication,
  kDataWait,
};
inline constexpr std::size_t kKernelKindCount = 13;

/// "gemm", "attention", ...
std::string_view name_of(KernelKind kind);

struct KernelTotals {
  std::int64_t calls = 0;
  double seconds = 0;
  double flops = 0;  ///< floating-point operations, a multiply-add counts two
  double bytes = 0;  ///< read and written once each, the least the kernel must move
};

struct Profile {
  bool timed = false;
  std::array<KernelTotals, kKernelKindCount> kinds{};

  KernelTotals& operator[](KernelKind kind) { return kinds[static_cast<std::size_t>(kind)]; }
  const KernelTotals& operator[](KernelKind kind) const { return kinds[static_cast<std::size_t>(kind)]; }
  double flops() const;
  void clear() { kinds = {}; }
};

}  // namespace dew
