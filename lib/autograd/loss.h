// The fused head: projection to the vocabulary and cross-entropy in chunks of tokens, so that logits of a
// whole microbatch never exist. T tokens, D width, V vocabulary.
#pragma once

#include "autograd/scope.h"

namespace dew {

/// loss = scale * sum over tokens with target >= 0 of cross-entropy(x W^T, target). x [T, D], w [V, D],
/// targets [T] i32
/// (-1 is masked out) -> loss [1] f64. `scale` is 1 / (valid targets of the whole global batch). Where x is
/// sharded the loss is partial. Chunks of `chunk` tokens. Saves dL/dx alone: both gradients are formed in the
/// forward, so the loss must be seeded with 1 (checked), and dL/dW is in the gradient buffer when this
/// returns.
/// Where axes split the vocabulary x must be replicated over them: three numbers a token and rank are
/// gathered once a chunk, the loss is the same on every rank, and dL/dx is a partial sum. Collective over
/// these axes.
Var head_loss(Scope& scope, const Var& x, ParamRef w, const Tensor& targets, double scale,
              std::int64_t chunk);

}  // namespace dew
