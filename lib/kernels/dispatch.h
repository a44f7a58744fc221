// The only place where a backend is chosen.
#pragma once

#include "base/check.h"
#include "tensor/stream.h"

/// Runs dew::kernels::cpu::CALL on a CPU stream and nothing on a meta stream (the entry point has counted
/// FLOP and bytes).
#define DEW_DISPATCH(stream, call)                                         \
  do {                                                                     \
    switch ((stream).device().kind) {                                      \
      case ::dew::Device::Kind::kCpu:                                      \
        ::dew::kernels::cpu::call;                                         \
        break;                                                             \
      case ::dew::Device::Kind::kMeta:                                     \
        break;                                                             \
      case ::dew::Device::Kind::kCuda:                                     \
        throw ::dew::Error("this program was built without CUDA kernels"); \
    }                                                                      \
  } while (false)
