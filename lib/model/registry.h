// The model families by name. A new one is a file in families/ and a row of the table.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "comm/axis.h"
#include "io/config.h"
#include "model/model.h"

namespace dew {

/// What a family is told of the run beside its own section.
struct ModelContext {
  std::int64_t data_vocab = 0;  ///< ids of the data are below this; 0 when not known yet
  std::int64_t seq_len = 0;
};

struct ModelFamily {
  std::string_view name;
  AxisSet supported;  ///< mesh axes on which it may be larger than 1
  /// Reads the section `model`, notes errors there, and returns the chain; after an error the chain is of no
  /// use.
  Model (*build)(ConfigSection section, const ModelContext& context);
};

std::span<const ModelFamily> model_families();

/// Builds the family that `model.family` names. Notes an error for an unknown one.
Model build_model(ConfigSection root, const ModelContext& context);

}  // namespace dew
