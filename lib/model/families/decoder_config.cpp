#include "model/families/decoder_config.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/text.h"
#include "model/registry.h"

namespace dew {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 24;  // of one size
constexpr double kMostParameters = 0x1p50;             // bytes of all state are then counted within 64 bits
constexpr IntegerRange kSize{1, kMost};

/// Where a token stands: model.position with the keys that belong to it.
void read_positions(ConfigSection& section, const ModelContext& context, DecoderConfig& c) {
  constexpr std::array<std::string_view, 3> kKinds{"rope", "learned", "none"};
  constexpr std::array<std::string_view, 2> kScalings{"none", "llama3"};
  const std::string kind = section.choice(
      {"position", "", "position coding: rope turns queries and keys, learned adds a vector a position"},
      "rope", kKinds);
  kernels::RopeAngles angles;
  angles.theta = section.real({"rope_theta", "", "base of the rotary angles"}, 10000, {0, 1e12, true, false});
  ConfigSection scaling = section.section(
      {"rope_scaling", "", "stretch of slow rotary angles for contexts beyond the first training"}, "kind");
  const std::string stretch =
      scaling.choice({"kind", "", "none, or llama3: as Llama 3 does it"}, "none", kScalings);
  kernels::RopeScaling s;
  s.factor = scaling.real({"factor", "", "what slow angles are divided by"}, 8, {1, 1e6, false, false});
  s.low = scaling.real({"low_freq_factor", "turns", "within original_positions, below which angles are slow"},
                       1, {0, 1e6, true, false});
  s.high = scaling.real({"high_freq_factor", "turns", "within original_positions, above which angles stay"},
                        4, {0, 1e6, true, false});
  s.original = static_cast<double>(
      scaling.integer({"original_positions", "positions", "of the first training"}, 8192, kSize));
  const auto positions =
      section.integer_or({"max_positions", "positions", "of learned positions; null: data.seq_len"}, "null",
                         std::nullopt, kSize);
  const auto error = [&c](ConfigSection& at, std::string_view key, const std::string& message) {
    at.error(key, message);
    c.valid = false;
  };
  if (stretch == "llama3") {
    if (kind != "rope") error(scaling, "kind", "stretches rotary angles; accepted with position: rope alone");
    if (s.high <= s.low && !scaling.faulty("high_freq_factor"))
      error(scaling, "high_freq_factor",
            "must be above low_freq_factor " + format_exact(s.low) + ", or no angle lies between");
    angles.scaling = s;
  } else if (!scaling.faulty("kind")) {
    // The defaults pass: a resolved file writes them.
    for (const char* key : {"factor", "low_freq_factor", "high_freq_factor", "original_positions"})
      if (scaling.changed(key)) error(scaling, key, "has no effect here; accepted with kind: llama3 alone");
  }
  if (kind != "rope" && section.changed("rope_theta"))
    error(section, "rope_theta", "has no effect here; accepted with position: rope alone");
  if (kind == "rope") c.rope = angles;
  if (kind != "learned") {
    if (positions) error(section, "max_positions", "belongs to position: learned; accepted: null");
    return;
  }
  c.positions = positions.value_or(std::max<std::int64_t>(context.seq_len, 1));
  if (c.positions < context.seq_len)
    error(section, "max_positions",
          "is below data.seq_len; accepted: " + std::to_string(context.seq_len) + " or more");
}

void read_parts(ConfigSection& section, DecoderConfig& c) {
  constexpr std::array<std::string_view, 2> kNorms{"rms", "layer"};
  constexpr std::array<std::string_view, 3> kActivations{"swiglu", "gelu", "gelu_tanh"};
  c.norm.layer =
      section.choice({"norm", "", "rms: RMSNorm; layer: LayerNorm, with a bias where bias is true"}, "rms",
                     kNorms) == "layer";
  const std::string activation = section.choice(
      {"activation", "", "of the MLP: swiglu (gated), gelu (exact) or gelu_tanh (its tanh form)"}, "swiglu",
      kActivations);
  c.activation = activation == "swiglu" ? Activation::kSwiglu
                 : activation == "gelu" ? Activation::kGelu
                                        : Activation::kGeluTanh;
  c.qk_norm =
      section.boolean({"qk_norm", "", "RMSNorm of every query and key head, before the rotary turn"}, false);
  c.bias = section.boolean({"bias", "", "biases of the layers' linear maps and of LayerNorm"}, false);
  c.norm.bias = c.bias;
  c.norm.eps =
      section.real({"norm_eps", "", "added to the mean square or variance"}, 1e-5, {0, 1, true, false});
  c.dropout = section.real(
      {"dropout", "share of elements",
       "dropped while training: after the embedding, of attention's weights, and of what enters the residual "
       "stream"},
      0, {0, 1, false, true});
}

/// In doubles, since the sizes are not checked yet: their products may pass 64 bits.
double parameters_of(const DecoderConfig& c) {
  const auto real = [](std::int64_t n) { return static_cast<double>(n); };
  const double heads = 2 * real(c.heads + c.kv_heads) * real(c.head_width);
  return real(c.width) * (real(c.layers) * (heads + 3 * real(c.mlp)) + 2 * real(c.vocab));
}

}  // namespace

DecoderConfig read_decoder_config(ConfigSection section, const ModelContext& context) {
  DecoderConfig c;
  c.layers = section.integer({"layers", "", "transformer layers"}, 2, {1, 1 << 16});
  c.width = section.integer({"width", "", "of the residual stream"}, 64, kSize);
  c.heads = section.integer({"heads", "", "query heads"}, 4, kSize);
  c.kv_heads = section
                   .integer_or({"kv_heads", "", "key and value heads; divides heads; auto: heads"}, "auto",
                               std::nullopt, kSize)
                   .value_or(c.heads);
  const auto head_width =
      section.integer_or({"head_width", "", "width of one head, even with rope; auto: width / heads"}, "auto",
                         std::nullopt, kSize);
  const auto mlp = section.integer_or(
      {"mlp", "", "hidden width of the MLP; auto: 8/3 width, rounded up to 32, for swiglu; else 4 width"},
      "auto", std::nullopt, kSize);
  const auto vocab = section.integer_or({"vocab", "tokens", "vocabulary; auto: that of the data"}, "auto",
                                        std::nullopt, kSize);
  read_positions(section, context, c);
  c.tied = section.boolean({"tied", "", "the head uses the embedding's table"}, false);
  c.windows = section.integers(
      {"window", "positions",
       "what a query sees, itself included: null for all before it, one number, or a list repeated over the "
       "layers, where 0 sees all"},
      {}, {0, kMost});
  c.init_std = section.real({"init_std", "", "of the normal initial weights"}, 0.02, {0, 10, true, false});
  c.init_residual = section.boolean(
      {"init_residual", "", "divide init_std by sqrt(2 layers) for the maps that end in the residual stream"},
      true);
  c.head_chunk = section.integer({"head_chunk", "tokens", "whose logits exist at one time"}, 1024, kSize);
  read_parts(section, c);

  const auto error = [&section, &c](std::string_view key, const std::string& message) {
    section.error(key, message);
    c.valid = false;
  };
  if (c.heads % c.kv_heads != 0) error("kv_heads", "must divide the " + std::to_string(c.heads) + " heads");
  if (!head_width && c.width % c.heads != 0)
    error("head_width", "needs a width that divides by the heads, not " + std::to_string(c.width) + " by " +
                            std::to_string(c.heads));
  c.head_width = head_width.value_or(c.width / c.heads);
  if (c.rope && c.head_width % 2 != 0 && !section.faulty("head_width"))
    error("head_width",
          std::to_string(c.head_width) + " is odd; rotary positions turn pairs, accepted: even");
  c.mlp = mlp.value_or(c.activation == Activation::kSwiglu ? (c.width * 8 / 3 + 31) / 32 * 32 : 4 * c.width);
  c.vocab = vocab.value_or(context.data_vocab);
  if (vocab && *vocab < context.data_vocab)
    error("vocab", "is smaller than the vocabulary of the data; accepted: " +
                       std::to_string(context.data_vocab) + " or more");
  if (parameters_of(c) > kMostParameters)
    error("width", format("with the other sizes gives %.2g parameters; accepted: up to %.2g",
                          parameters_of(c), kMostParameters));
  if (c.vocab < 1) c.valid = false;  // the data could not be opened; its own error says so
  return c;
}

}  // namespace dew
