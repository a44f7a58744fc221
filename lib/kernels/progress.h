// When a kernel lets the network advance before it starts.
#pragma once

#include "tensor/stream.h"

namespace dew::kernels {

/// Calls of fewer FLOP end before a poll of the network would pay.
constexpr double kProgressFlops = 1e6;

/// Lets pending transfers of the stream advance before a call of `flops` that keeps the thread for long.
inline void progress_before(Stream& stream, double flops) {
  if (flops >= kProgressFlops) stream.progress();
}

}  // namespace dew::kernels
