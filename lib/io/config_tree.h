// What a Config and its sections share: the values of the file, the keys that were read so far, and the
// errors found. Paths are key names joined by dots.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/config.h"
#include "io/config_value.h"

namespace dew {

/// "section.key", or "key" at the root.
std::string join_path(std::string_view section, std::string_view key);

class ConfigTree {
 public:
  /// `root` must be a mapping.
  explicit ConfigTree(ConfigValue root) : root_(std::move(root)) {}

  /// The value at a path, or nullptr when it is not given.
  const ConfigValue* find(std::string_view path) const;
  /// Puts "key.path=value" over the file. Throws ConfigError.
  void set(std::string_view assignment);

  /// Makes a path known as a section; turns its short form into the key `short_key` (unless that is empty).
  void open_section(const std::string& path, std::string_view short_key);
  /// Makes a key known; `yaml` is its value now. A second reading of a path keeps the first row.
  void record(KeyRow row, std::string yaml);
  /// True for a recorded key whose value is not its default.
  bool changed(std::string_view path) const;
  /// Notes an error at a path, with its place and value.
  void note(const std::string& path, const std::string& message);
  /// Notes an error that says its own path; told after those with a place in the file.
  void note(std::string text);

  /// True when an error was noted at the path or below it.
  bool faulty(std::string_view path) const;

  void throw_errors() const;
  std::string resolved() const;
  std::vector<KeyRow> table() const;

 private:
  struct Noted {
    std::int64_t order;
    std::string text;
    std::string path = {};
  };
  struct Row {
    KeyRow key;
    std::string yaml;
  };

  std::int64_t order_of(std::string_view path) const;
  void know(const std::string& path);
  void collect_unknown(const ConfigValue& mapping, const std::string& path, std::vector<Noted>& errors) const;
  std::string suggestion(const std::string& section, const std::string& key) const;
  void write_section(const std::string& path, int depth, std::string& out) const;

  ConfigValue root_;
  std::int64_t overrides_ = 0;
  std::set<std::string, std::less<>> sections_;
  std::map<std::string, std::vector<std::string>, std::less<>>
      children_;           ///< known names of a section, as first read
  std::vector<Row> rows_;  ///< in the order of the reads
  std::map<std::string, std::size_t, std::less<>> row_of_;
  std::vector<Noted> noted_;
  std::set<std::string> noted_texts_;
};

}  // namespace dew
