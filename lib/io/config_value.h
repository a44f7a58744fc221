// One value of a YAML document as the configuration keeps it: plain text with its place, nothing converted
// yet.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dew {

struct ConfigValue {
  enum class Kind : std::uint8_t { kNull, kScalar, kList, kMapping };
  struct Entry;

  Kind kind = Kind::kNull;
  std::string text;                ///< of a scalar, quotes removed
  bool quoted = false;             ///< the scalar stood in quotes or in a text block
  int line = 0;                    ///< of its key, from 1; 0: an override
  std::int64_t order = 0;          ///< place among all values of the file and of the overrides after it
  std::vector<ConfigValue> items;  ///< of a list
  std::vector<Entry> entries;      ///< of a mapping, in the order of the file
  std::vector<ConfigValue>
      short_form;  ///< of a mapping: the single value that stood here before an override gave a key

  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_mapping() const { return kind == Kind::kMapping; }
  /// The value of a key of a mapping, or nullptr.
  const ConfigValue* find(std::string_view key) const;
  ConfigValue* find(std::string_view key);
};

struct ConfigValue::Entry {
  std::string key;
  ConfigValue value;
};

/// The value as the user wrote it, on one line, shortened when long.
std::string written(const ConfigValue& value);
/// A text on one line: control characters escaped, shortened when long.
std::string shown(std::string_view text);

/// Where a document comes from, for messages and for the order of errors.
struct ConfigOrigin {
  std::string name;  ///< "run.yaml", or the override
  bool from_override = false;
  std::int64_t first_order = 0;
  bool by_program = false;  ///< a resolved description, which may be above 1 MiB
};

/// One YAML document as a value. Throws ConfigError with the line when it is not YAML, is not UTF-8, is above
/// 1 MiB or nested too deep, holds a duplicate key, an anchor, an alias or a tag, or when a second document
/// follows.
ConfigValue parse_config(const std::string& text, const ConfigOrigin& origin);

}  // namespace dew
