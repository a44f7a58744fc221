// A YAML run description as a tree of typed reads. Every read names its key, unit, default and meaning once;
// from the reads come the values, all errors of the file at once, the unknown keys, the resolved file and the
// table of keys.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dew {

class ConfigTree;

/// What a key is called, its unit ("" for none) and what it means, for the table.
struct Key {
  std::string_view name;
  std::string_view unit;
  std::string_view meaning;
};

/// Inclusive limits; a message prints them ("accepted: 1 or more", "accepted: 0 to 1").
struct IntegerRange {
  std::int64_t low = std::numeric_limits<std::int64_t>::min();
  std::int64_t high = std::numeric_limits<std::int64_t>::max();
};
struct RealRange {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;   ///< low itself is refused
  bool high_open = false;  ///< high itself is refused
};

/// A key of the table: its full path, type in words, unit, default as text and meaning.
struct KeyRow {
  std::string path, type, unit, default_text, meaning;
};

/// One mapping of the document, a cheap handle into a Config that must outlive it. A read that finds a wrong
/// type or range notes an error (path, line, value, what is accepted) and returns the default. A missing key,
/// and a section that is missing, give the defaults.
class ConfigSection {
 public:
  ConfigSection section(Key key);
  /// A section that may also be written as one value, which is then its key `short_key`: `device: cpu` means
  /// `device: {kind: cpu}`.
  ConfigSection section(Key key, std::string_view short_key);
  /// True when the file (or --set) gives the key, null included.
  bool has(std::string_view key) const;
  /// True when the key was read and has another value than its default.
  bool changed(std::string_view key) const;
  /// True when it is given and is a mapping.
  bool is_mapping(std::string_view key) const;

  std::int64_t integer(Key key, std::int64_t fallback, IntegerRange range = {});
  double real(Key key, double fallback, RealRange range = {});
  bool boolean(Key key, bool fallback);
  std::string text(Key key, std::string fallback);
  std::string choice(Key key, std::string_view fallback, std::span<const std::string_view> accepted);
  /// An integer or the given word (nullopt): `replica: auto`, `window: null`. The word "null" also accepts ~
  /// and empty.
  std::optional<std::int64_t> integer_or(Key key, std::string_view word, std::optional<std::int64_t> fallback,
                                         IntegerRange range = {});
  std::optional<double> real_or(Key key, std::string_view word, std::optional<double> fallback,
                                RealRange range = {});
  std::optional<std::string> text_or(Key key, std::string_view word, std::optional<std::string> fallback);
  /// Bytes: a count or a number with KiB, MiB, GiB. Seconds: a number with s, m, h.
  std::int64_t bytes(Key key, std::int64_t fallback);
  double seconds(Key key, double fallback);
  /// A count of steps or a duration: exactly one of the two is set in the result.
  struct StepsOrSeconds {
    std::optional<std::int64_t> steps;
    std::optional<double> seconds;
  };
  StepsOrSeconds steps_or_seconds(Key key, std::int64_t fallback_steps);
  /// A list, or one scalar taken as a list of one.
  std::vector<std::string> texts(Key key, std::vector<std::string> fallback);
  /// One word, or a list: exactly one of the two is set in the result. `type` says in words what is accepted.
  struct WordOrTexts {
    std::string word;
    std::vector<std::string> texts;
  };
  WordOrTexts word_or_texts(Key key, std::string_view fallback, std::string_view type);
  /// The same of integers; null is the empty list.
  std::vector<std::int64_t> integers(Key key, std::vector<std::int64_t> fallback, IntegerRange range = {});
  std::vector<double> reals(Key key, std::vector<double> fallback, std::size_t count, RealRange range = {});
  /// A mapping of words to lists of words: `rules: {heads: [tensor]}`.
  std::map<std::string, std::vector<std::string>> text_lists(Key key);

  /// Notes an error at a key of this section: "PATH (line N): VALUE: MESSAGE". A key that is not given shows
  /// its default.
  void error(std::string_view key, const std::string& message);
  /// True when an error was noted at the key or below it: a check that would follow from its value is then
  /// moot.
  bool faulty(std::string_view key) const;
  const std::string& path() const { return path_; }

 private:
  friend class Config;
  ConfigSection(std::shared_ptr<ConfigTree> tree, std::string path)
      : tree_(std::move(tree)), path_(std::move(path)) {}
  std::shared_ptr<ConfigTree> tree_;
  std::string path_;  ///< "" at the root
};

class Config {
 public:
  /// Throws ConfigError (which names the text `name`) when the text is not YAML, holds a duplicate key or is
  /// no mapping.
  static Config from_text(const std::string& text, const std::string& name);

  /// "key.path=value", the value in YAML. Errors as from_text.
  void set(std::string_view assignment);

  ConfigSection root();
  /// Notes an error that says its own path, found outside the reads: a data file that cannot be opened.
  void note(const std::string& message);
  /// Throws one ConfigError with every noted error, each key that no read asked for (with the nearest known
  /// key), in the order of the file. Call when all reads are made.
  void throw_errors();
  /// Every key that was read with its value, as YAML in the order of the reads. Re-reading it gives the same
  /// values.
  std::string resolved() const;
  /// The table of every key read.
  std::vector<KeyRow> table() const;

 private:
  explicit Config(std::shared_ptr<ConfigTree> tree) : tree_(std::move(tree)) {}
  std::shared_ptr<ConfigTree> tree_;
};

}  // namespace dew
