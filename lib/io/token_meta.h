// meta.json of a token directory, and the names of the files beside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dew {

inline constexpr std::string_view kTrainFile = "train.bin";
inline constexpr std::string_view kValidationFile = "val.bin";
inline constexpr std::string_view kTrainMask = "train.mask";
inline constexpr std::string_view kValidationMask = "val.mask";
inline constexpr std::string_view kMetaFile = "meta.json";

/// How an id is stored: unsigned, little-endian.
enum class TokenType : std::uint8_t { kUint8, kUint16, kUint32 };

std::size_t size_of(TokenType type);       ///< bytes of one id
std::string_view name_of(TokenType type);  ///< "uint8", "uint16", "uint32"

struct TokenMeta {
  std::string tokenizer;
  std::int64_t vocab_size = 0;
  TokenType type = TokenType::kUint8;
  std::int64_t train_tokens = 0, val_tokens = 0;
  std::optional<std::int64_t>
      eos_id;  ///< ends a document; nullopt (null in the file): the tokenizer has none
};

/// Reads `path`. Throws one ConfigError (path data.tokens) with everything that is missing, of the wrong type
/// or out of range.
TokenMeta read_token_meta(const std::string& path);

/// The text of meta.json.
std::string to_json(const TokenMeta& meta);

}  // namespace dew
