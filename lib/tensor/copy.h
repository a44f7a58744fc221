// Copies between tensors and casts between floating types.
#pragma once

#include <span>

#include "tensor/tensor.h"

namespace dew {

/// Copies `source` into `target`: equal sizes; equal dtypes, or both floating (then a cast, rounding to
/// nearest even). Enqueued on the stream.
void copy(Stream& stream, const Tensor& source, const Tensor& target);

/// Sets every element of a floating tensor. Enqueued on the stream.
void fill(Stream& stream, const Tensor& target, double value);

/// Element 0 of a floating tensor, read on the host; blocks until the stream is done. 0 on a meta device.
double read_scalar(Stream& stream, const Tensor& tensor);

}  // namespace dew
