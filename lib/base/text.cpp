#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <vector>

namespace dew {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace

std::string format(const char* pattern, ...) {
  va_list args;
  va_start(args, pattern);
  va_list again;
  va_copy(again, args);
  const int length = std::vsnprintf(nullptr, 0, pattern, args);
  va_end(args);
  std::string text(static_cast<std::size_t>(std::max(length, 0)), '\0');
  std::vsnprintf(text.data(), text.size() + 1, pattern, again);
  va_end(again);
  return text;
}

std::string format_bytes(double bytes) {
  constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return format(unit == 0 ? "%.0f %s" : "%.1f %s", bytes, kUnits[unit]);
}

std::string format_count(double count) {
  constexpr std::array<const char*, 6> kUnits{"", "k", "M", "G", "T", "P"};
  std::size_t unit = 0;
  while (std::abs(count) >= 999.5 && unit + 1 < kUnits.size()) {
    count /= 1000;
    ++unit;
  }
  const double size = std::abs(count);
  const int decimals = unit == 0 && count == std::floor(count) ? 0 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  return format("%.*f%s", decimals, count, kUnits[unit]);
}

std::string format_duration(double seconds) {
  const std::int64_t whole = std::llround(seconds);
  if (seconds < 9.95) return format("%.1fs", seconds);
  if (whole < 60) return format("%llds", static_cast<long long>(whole));
  if (whole < 3600)
    return format("%lldm %02llds", static_cast<long long>(whole / 60), static_cast<long long>(whole % 60));
  return format("%lldh %02lldm", static_cast<long long>(whole / 3600),
                static_cast<long long>(whole / 60 % 60));
}

std::string format_exact(double value) {
  std::array<char, 32> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

std::string nearest_word(std::string_view word, std::span<const std::string> candidates) {
  std::string best;
  // Two slips of the hand, more in a long word, and never so many that nothing of the word is left.
  std::size_t best_distance = std::min(std::max<std::size_t>(2, word.size() / 2) + 1, word.size());
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace dew
