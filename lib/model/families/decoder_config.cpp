#include "model/families/decoder_config.h"

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

/// Keys whose other values come with later versions: read, so that they are known, and refused by name.
bool read_fixed_keys(ConfigSection& section) {
  constexpr std::array<std::string_view, 1> kNorm{"rms"}, kActivation{"swiglu"}, kPosition{"rope"};
  section.choice({"norm", "", "normalisation; only rms in this version"}, "rms", kNorm);
  section.choice({"activation", "", "of the MLP; only swiglu in this version"}, "swiglu", kActivation);
  section.choice({"position", "", "position coding; only rope in this version"}, "rope", kPosition);
  bool valid = true;
  const auto refuse = [&section, &valid](std::string_view key, const std::string& accepted) {
    section.error(key, "is not available in this version; accepted: " + accepted);
    valid = false;
  };
  if (section.boolean({"qk_norm", "", "normalise queries and keys; only false in this version"}, false))
    refuse("qk_norm", "false");
  if (section.boolean({"bias", "", "biases of linear maps; only false in this version"}, false))
    refuse("bias", "false");
  if (section.real({"dropout", "", "share of activations dropped; only 0 in this version"}, 0,
                   {0, 1, false, true}) != 0)
    refuse("dropout", "0");
  if (section.integer_or({"max_positions", "positions", "of learned positions; only null in this version"},
                         "null", std::nullopt, {1, kMost}))
    refuse("max_positions", "null");
  return valid;
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
  c.kv_heads = section.integer({"kv_heads", "", "key and value heads; divides heads"}, c.heads, kSize);
  const auto head_width = section.integer_or(
      {"head_width", "", "width of one head, even; auto: width / heads"}, "auto", std::nullopt, kSize);
  const auto mlp = section.integer_or(
      {"mlp", "", "hidden width of the MLP; auto: 8/3 width, rounded up to 32"}, "auto", std::nullopt, kSize);
  const auto vocab = section.integer_or({"vocab", "tokens", "vocabulary; auto: that of the data"}, "auto",
                                        std::nullopt, kSize);
  c.rope_theta = section.real({"rope_theta", "", "base of the rotary angles"}, 10000, {0, 1e12, true, false});
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
  c.norm_eps = section.real({"norm_eps", "", "added to the mean square"}, 1e-5, {0, 1, true, false});
  c.head_chunk = section.integer({"head_chunk", "tokens", "whose logits exist at one time"}, 1024, kSize);
  c.valid = read_fixed_keys(section);

  const auto error = [&section, &c](std::string_view key, const std::string& message) {
    section.error(key, message);
    c.valid = false;
  };
  if (c.heads % c.kv_heads != 0) error("kv_heads", "must divide the " + std::to_string(c.heads) + " heads");
  if (!head_width && c.width % c.heads != 0)
    error("head_width", "needs a width that divides by the heads, not " + std::to_string(c.width) + " by " +
                            std::to_string(c.heads));
  c.head_width = head_width.value_or(c.width / c.heads);
  if (c.head_width % 2 != 0 && !section.faulty("head_width"))
    error("head_width",
          std::to_string(c.head_width) + " is odd; rotary positions turn pairs, accepted: even");
  c.mlp = mlp.value_or((c.width * 8 / 3 + 31) / 32 * 32);
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
