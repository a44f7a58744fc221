// metrics.jsonl: one JSON object a line, numbers that round-trip. Written by one rank.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace dew {

/// A field of a line: text, an integer or a real (17 digits; not finite is written as null).
using JsonValue = std::variant<std::string, std::int64_t, double>;
using JsonField = std::pair<std::string_view, JsonValue>;

class MetricsLog {
 public:
  /// Opens (or makes) the file for appending after dropping every line with a `step` beyond `last_step` and
  /// any torn last line; with last_step < 0 the file starts empty. The shortened file replaces the old one by
  /// rename. Throws Error.
  MetricsLog(const std::string& path, std::int64_t last_step);
  /// Appends one object and flushes it. Throws Error when the system refuses.
  void write(std::span<const JsonField> fields);

 private:
  struct Closer {
    void operator()(std::FILE* file) const;
  };
  std::string path_;
  std::unique_ptr<std::FILE, Closer> file_;
};

}  // namespace dew
