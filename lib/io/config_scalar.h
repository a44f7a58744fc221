// Single values of a run description: strict reading of numbers, and text that reads back to the same value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dew {

/// Decimal digits with a sign or without; nothing else, no leading zero, no overflow.
std::optional<std::int64_t> parse_integer(std::string_view text);
/// "1e-3", ".5", "-2.0": finite, neither too large nor too small for a double.
std::optional<double> parse_real(std::string_view text);
/// Bytes: a count, or a number with KiB, MiB or GiB that makes a whole number of bytes.
std::optional<std::int64_t> parse_bytes(std::string_view text);
/// Seconds: a number of 0 or more with s, m or h.
std::optional<double> parse_seconds(std::string_view text);

/// The text in double quotes, escaped.
std::string quoted_yaml(std::string_view text);
/// The text as a YAML scalar, in quotes unless it is a plain word or path.
std::string text_yaml(std::string_view text);

}  // namespace dew
