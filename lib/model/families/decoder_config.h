// The keys of `model` for the decoder family, read and checked.
#pragma once

#include <cstdint>
#include <vector>

#include "io/config.h"

namespace dew {

struct ModelContext;

struct DecoderConfig {
  std::int64_t layers = 0, width = 0, heads = 0, kv_heads = 0, head_width = 0, mlp = 0, vocab = 0;
  double rope_theta = 10000, norm_eps = 1e-5, init_std = 0.02;
  bool tied = false, init_residual = true;
  std::vector<std::int64_t>
      windows;  ///< repeated over the layers; 0: a layer that sees all before it; empty: all
  std::int64_t head_chunk = 1024;  ///< tokens whose logits exist at one time
  bool valid = true;               ///< false: errors were noted

  std::int64_t window_of(std::int64_t layer) const {
    return windows.empty() ? 0 : windows[static_cast<std::size_t>(layer) % windows.size()];
  }
};

/// Notes errors in the section. Keys of the contract that do not work yet are refused by name.
DecoderConfig read_decoder_config(ConfigSection section, const ModelContext& context);

}  // namespace dew
