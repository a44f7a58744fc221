// The build functions of the families, for the registry.
#pragma once

#include "io/config.h"
#include "model/model.h"

namespace dew {

struct ModelContext;

/// Decoder-only transformer: embedding, layers of attention and gated MLP with RMSNorm, head with loss.
Model build_decoder(ConfigSection section, const ModelContext& context);

}  // namespace dew
