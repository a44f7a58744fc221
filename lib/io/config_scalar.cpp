#include "io/config_scalar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace dew {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::size_t digits_at(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  while (end < text.size() && is_digit(text[end])) ++end;
  return end - begin;
}

/// from_chars alone would also take "inf", "nan" and a number with something behind it.
bool looks_real(std::string_view text) {
  std::size_t at = !text.empty() && text[0] == '-' ? 1 : 0;
  const std::size_t whole = digits_at(text, at);
  at += whole;
  std::size_t fraction = 0;
  if (at < text.size() && text[at] == '.') {
    fraction = digits_at(text, at + 1);
    at += 1 + fraction;
  }
  if (whole + fraction == 0) return false;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    const std::size_t exponent = digits_at(text, at);
    if (exponent == 0) return false;
    at += exponent;
  }
  return at == text.size();
}

std::string_view without_plus(std::string_view text) {
  const bool plus = text.size() > 1 && text[0] == '+' && text[1] != '-';
  return plus ? text.substr(1) : text;
}

/// Takes the unit off the end, and one space before it.
bool take_suffix(std::string_view& text, std::string_view unit) {
  if (text.size() <= unit.size() || text.substr(text.size() - unit.size()) != unit) return false;
  text.remove_suffix(unit.size());
  if (text.size() > 1 && text.back() == ' ') text.remove_suffix(1);
  return true;
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) {
  text = without_plus(text);
  const std::string_view digits = !text.empty() && text[0] == '-' ? text.substr(1) : text;
  if (digits.empty() || digits_at(digits, 0) != digits.size()) return std::nullopt;
  if (digits.size() > 1 && digits[0] == '0') return std::nullopt;
  std::int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{}) return std::nullopt;
  return value;
}

std::optional<double> parse_real(std::string_view text) {
  text = without_plus(text);
  if (!looks_real(text)) return std::nullopt;
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{} || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_bytes(std::string_view text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr std::array<Unit, 3> kUnits{{{"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}}};
  for (const Unit& unit : kUnits) {
    if (!take_suffix(text, unit.name)) continue;
    const std::optional<double> number = parse_real(text);
    if (!number) return std::nullopt;
    const double bytes = *number * unit.bytes;
    constexpr double kLimit = 9007199254740992.0;  // 2^53: whole numbers are exact below
    if (bytes < 0 || bytes > kLimit || bytes != std::floor(bytes)) return std::nullopt;
    return static_cast<std::int64_t>(bytes);
  }
  const std::optional<std::int64_t> count = parse_integer(text);
  return count && *count >= 0 ? count : std::nullopt;
}

std::optional<double> parse_seconds(std::string_view text) {
  const double scale = take_suffix(text, "s")   ? 1
                       : take_suffix(text, "m") ? 60
                       : take_suffix(text, "h") ? 3600
                                                : 0;
  if (scale == 0) return std::nullopt;
  const std::optional<double> number = parse_real(text);
  if (!number || *number < 0 || !std::isfinite(*number * scale)) return std::nullopt;
  return *number * scale;
}

std::string quoted_yaml(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      out += format("\\x%02x", static_cast<unsigned>(byte));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string text_yaml(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  constexpr std::array<std::string_view, 9> kWords{"null", "true", "false", "yes", "no",
                                                   "on",   "off",  "y",     "n"};
  const bool word = std::find(kWords.begin(), kWords.end(), lower) != kWords.end();
  const bool starts = !text.empty() && (is_letter(text[0]) || text[0] == '_' || text[0] == '/');
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter(c) || is_digit(c) || c == '_' || c == '.' || c == '/' || c == '-';
  });
  return starts && plain && !word ? std::string(text) : quoted_yaml(text);
}

}  // namespace dew
