// Where token ids come from: two splits, each one long line of ids.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dew {

enum class Split : std::uint8_t { kTrain, kValidation };

class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual std::int64_t vocab_size() const = 0;
  virtual std::int64_t tokens(Split split) const = 0;
  /// The id that ends a document; none where the tokenizer has none.
  virtual std::optional<std::int32_t> eos_id() const { return std::nullopt; }
  /// ids[i] = the id at begin + i. Throws Error on an id that is not below vocab_size, naming its place.
  virtual void read(Split split, std::int64_t begin, std::span<std::int32_t> ids) const = 0;
  /// counts[i] = 1 where the id at begin + i counts in the loss as a target, else 0; all 1 for a source
  /// without loss masks.
  virtual void read_mask(Split split, std::int64_t begin, std::span<std::uint8_t> counts) const;
  /// A hint that these ids are read next; returns at once.
  virtual void will_need(Split split, std::int64_t begin, std::int64_t count) const = 0;
  /// For the head: "text (2 files, 1.1 MB, bytes)".
  virtual std::string describe() const = 0;
};

/// A directory with train.bin, val.bin and meta.json, memory-mapped, and perhaps the loss masks train.mask
/// and val.mask: a byte a token, 1 where it counts as a target and 0 where it does not. Throws ConfigError
/// (path data.tokens) naming the file and what is wrong: missing, odd size, another token count than meta
/// says, unknown dtype.
std::unique_ptr<TokenSource> open_token_directory(const std::string& directory);
/// Files read as bytes (vocabulary 256), one after the other, memory-mapped; the last `validation` share
/// validates. Throws ConfigError (path data.text).
std::unique_ptr<TokenSource> open_text_files(const std::vector<std::string>& files, double validation);
/// `count` short English sentences as bytes, a pure function of (count, seed); the last `validation` share
/// validates.
std::unique_ptr<TokenSource> generate_sentences(std::int64_t count, std::uint64_t seed, double validation);

}  // namespace dew
