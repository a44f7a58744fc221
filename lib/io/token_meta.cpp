#include "io/token_meta.h"

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/check.h"
#include "io/config_value.h"
#include "io/mapped_file.h"

namespace dew {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<TokenType, 3> kTypes{TokenType::kUint8, TokenType::kUint16, TokenType::kUint32};
constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
constexpr int kMaxDepth = 16;
/// Ids travel as int32 in memory.
constexpr std::int64_t kLargestVocabulary = std::numeric_limits<std::int32_t>::max();

/// Typed reads that note what is wrong.
class MetaReader {
 public:
  MetaReader(const Json& json, std::string path) : json_(json), path_(std::move(path)) {}

  void note(const std::string& message) { messages_.push_back("data.tokens: " + path_ + ": " + message); }

  /// The value of a key, or null (noted) when it is missing.
  const Json* find(const char* key) {
    const auto found = json_.find(key);
    if (found != json_.end()) return &*found;
    note(std::string("lacks the key ") + key);
    return nullptr;
  }

  std::string text(const char* key) {
    const Json* value = find(key);
    if (value == nullptr) return {};
    if (!value->is_string()) {
      wrong(key, *value, "a text");
      return {};
    }
    return value->get<std::string>();
  }

  std::int64_t integer(const char* key, std::int64_t low, std::int64_t high) {
    const Json* value = find(key);
    return value == nullptr ? low : integer_of(key, *value, low, high);
  }

  std::optional<std::int64_t> integer_or_null(const char* key, std::int64_t low, std::int64_t high) {
    const Json* value = find(key);
    if (value == nullptr || value->is_null()) return std::nullopt;
    return integer_of(key, *value, low, high);
  }

  void wrong(const char* key, const Json& value, const std::string& accepted) {
    note(std::string(key) + ": " + shown(value.dump(-1, ' ', false, Json::error_handler_t::replace)) +
         ": accepted: " + accepted);
  }

  void throw_errors() const {
    if (!messages_.empty()) throw ConfigError(messages_);
  }

 private:
  std::int64_t integer_of(const char* key, const Json& value, std::int64_t low, std::int64_t high) {
    const bool fits =
        value.is_number_integer() &&
        !(value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(high));
    if (fits && value.get<std::int64_t>() >= low && value.get<std::int64_t>() <= high)
      return value.get<std::int64_t>();
    wrong(key, value, "an integer from " + std::to_string(low) + " to " + std::to_string(high));
    return low;
  }

  const Json& json_;
  std::string path_;
  std::vector<std::string> messages_;
};

TokenType read_type(MetaReader& reader) {
  const Json* value = reader.find("dtype");
  if (value == nullptr) return TokenType::kUint8;
  for (const TokenType type : kTypes) {
    if (value->is_string() && value->get<std::string>() == name_of(type)) return type;
  }
  reader.wrong("dtype", *value, "uint8, uint16 or uint32");
  return TokenType::kUint8;
}

}  // namespace

std::size_t size_of(TokenType type) {
  return std::size_t{1} << static_cast<int>(type);
}

std::string_view name_of(TokenType type) {
  constexpr std::array<std::string_view, 3> kNames{"uint8", "uint16", "uint32"};
  return kNames[static_cast<std::size_t>(type)];
}

TokenMeta read_token_meta(const std::string& path) {
  const MappedFile file(path, "data.tokens");
  if (file.bytes().size() > kMaxBytes) throw ConfigError("data.tokens: " + path + ": holds more than 1 MiB");
  const auto* first = reinterpret_cast<const char*>(file.bytes().data());
  std::set<std::string> keys;
  std::vector<std::string> twice;
  bool deep = false;
  const auto look = [&](int depth, Json::parse_event_t event, Json& parsed) {
    deep = deep || depth > kMaxDepth;  // the value would be printed level by level
    if (event == Json::parse_event_t::key && depth == 1 && !keys.insert(parsed.get<std::string>()).second)
      twice.push_back(parsed.get<std::string>());
    return depth <= kMaxDepth;
  };
  const Json json = Json::parse(first, first + file.bytes().size(), look, false);
  if (!json.is_object()) throw ConfigError("data.tokens: " + path + ": is no JSON object");
  if (deep)
    throw ConfigError("data.tokens: " + path + ": is nested deeper than " + std::to_string(kMaxDepth) +
                      " levels");

  MetaReader reader(json, path);
  for (const std::string& key : twice) reader.note("the key " + shown(key) + " comes twice");
  constexpr std::int64_t kMost =
      std::numeric_limits<std::int64_t>::max() / 4;  // so that bytes can be counted
  TokenMeta meta;
  meta.tokenizer = reader.text("tokenizer");
  meta.vocab_size = reader.integer("vocab_size", 1, kLargestVocabulary);
  meta.type = read_type(reader);
  meta.train_tokens = reader.integer("train_tokens", 0, kMost);
  meta.val_tokens = reader.integer("val_tokens", 0, kMost);
  meta.eos_id = reader.integer_or_null("eos_id", 0, meta.vocab_size - 1);
  reader.throw_errors();
  return meta;
}

std::string to_json(const TokenMeta& meta) {
  Json json;
  json["tokenizer"] = meta.tokenizer;
  json["vocab_size"] = meta.vocab_size;
  json["dtype"] = name_of(meta.type);
  json["train_tokens"] = meta.train_tokens;
  json["val_tokens"] = meta.val_tokens;
  json["eos_id"] = meta.eos_id ? Json(*meta.eos_id) : Json(nullptr);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace dew
