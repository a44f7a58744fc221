// All an op may know of a parameter: its place in the block's list. The tape asks what is bound there when it
// needs the value, so that a released gather can be neither kept alive nor read stale.
#pragma once

#include <span>
#include <vector>

#include "comm/layout.h"
#include "kernels/gemm.h"
#include "tensor/tensor.h"

namespace dew {

struct ParamRef {
  int index = 0;
};

using kernels::Target;

/// Where the weight gradients of one block go.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  /// The unreduced gradient of a parameter, of the parameter's shape. The first caller overwrites, later ones
  /// accumulate; after the call the buffer counts as written.
  virtual Target gradient(ParamRef param) = 0;
};

/// Which part of a parameter this rank computes with.
struct ParamPart {
  Slab slab;                   ///< its rectangle of the global tensor
  std::vector<AxisSet> split;  ///< by dim: the axes of extent above 1 that split it
};

/// The parameters of one block while they are bound.
struct ParamViews {
  std::vector<Tensor> values;         ///< what the block computes with, by ParamRef
  std::span<const ParamPart> parts;   ///< by ParamRef; empty: every parameter is whole
  GradientSink* gradients = nullptr;  ///< null when no gradient is wanted
};

}  // namespace dew
