// Formatting for people and for files that must round-trip.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace dew {

/// printf-style formatting into a string.
[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...);

/// "512 B", "1.5 KiB", "2.0 GiB".
std::string format_bytes(double bytes);
/// "950", "12.3k", "1.20M", "3.4G": three significant digits.
std::string format_count(double count);
/// "9.5s", "12s", "3m 05s", "2h 10m".
std::string format_duration(double seconds);
/// The shortest decimal text that reads back to the same double.
std::string format_exact(double value);

/// The candidate with the smallest edit distance to `word`, or "" when none is near enough to be a slip of
/// the hand.
std::string nearest_word(std::string_view word, std::span<const std::string> candidates);

}  // namespace dew
