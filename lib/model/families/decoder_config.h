// The keys of `model` for the decoder family, read and checked.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "io/config.h"
#include "model/parts/attention.h"
#include "model/parts/mlp.h"

namespace dew {

struct ModelContext;

struct DecoderConfig {
  std::int64_t layers = 0, width = 0, heads = 0, kv_heads = 0, head_width = 0, mlp = 0, vocab = 0;
  std::optional<kernels::RopeAngles> rope;  ///< none: learned positions, or none at all
  std::int64_t positions = 0;               ///< learned ones; 0: none
  NormConfig norm;
  Activation activation = Activation::kSwiglu;
  double init_std = 0.02, dropout = 0;
  bool tied = false, init_residual = true, bias = false, qk_norm = false;
  std::vector<std::int64_t>
      windows;  ///< repeated over the layers; 0: a layer that sees all before it; empty: all
  std::int64_t head_chunk = 1024;  ///< tokens whose logits exist at one time
  bool valid = true;               ///< false: errors were noted

  std::int64_t window_of(std::int64_t layer) const {
    return windows.empty() ? 0 : windows[static_cast<std::size_t>(layer) % windows.size()];
  }
};

/// Notes errors in the section.
DecoderConfig read_decoder_config(ConfigSection section, const ModelContext& context);

}  // namespace dew
