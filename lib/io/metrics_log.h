// metrics.jsonl: one JSON object a line, numbers that round-trip. Written by one rank.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "io/posix_file.h"

namespace dew {

/// A field of a line: text, an integer or a real (17 digits; not finite is written as null).
using JsonValue = std::variant<std::string, std::int64_t, double>;
using JsonField = std::pair<std::string_view, JsonValue>;

class MetricsLog {
 public:
  /// Opens (or makes) the file for appending after dropping every line with a `step` beyond `last_step` and
  /// any torn last line; lines without a step and, for last_step 0, those of step 0 stay. With last_step < 0
  /// the file starts empty. The shortened file replaces the old one by
  /// rename. Throws Error.
  MetricsLog(const std::string& path, std::int64_t last_step);
  /// Appends one object, at once for others to read. Throws Error when the system refuses.
  void write(std::span<const JsonField> fields);
  /// The largest `step` of the lines kept at opening that have a `val_loss`; -1 without one.
  std::int64_t last_evaluation() const { return last_evaluation_; }

 private:
  std::optional<PosixFile> file_;
  std::int64_t last_evaluation_ = -1;
};

}  // namespace dew
