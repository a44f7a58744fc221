#include "tensor/stream.h"

#include "base/check.h"
#include "base/timer.h"

namespace dew {

std::string_view name_of(KernelKind kind) {
  constexpr std::array<std::string_view, kKernelKindCount> kNames{
      "gemm",      "attention", "norm",   "rope",   "activation",    "embedding", "cross_entropy",
      "pointwise", "optimizer", "reduce", "random", "communication", "data_wait"};
  return kNames[static_cast<std::size_t>(kind)];
}

double Profile::flops() const {
  double total = 0;
  for (const KernelTotals& totals : kinds) total += totals.flops;
  return total;
}

KernelScope::KernelScope(Stream& stream, KernelKind kind, double flops, double bytes)
    : profile_(stream.profile()), kind_(kind) {
  KernelTotals& totals = profile_[kind];
  ++totals.calls;
  totals.flops += flops;
  totals.bytes += bytes;
  if (profile_.timed) start_ = steady_seconds();
}

KernelScope::~KernelScope() {
  if (profile_.timed) profile_[kind_].seconds += steady_seconds() - start_;
}

}  // namespace dew
