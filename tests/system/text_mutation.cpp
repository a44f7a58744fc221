#include "system/text_mutation.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"

namespace dew::testing {
namespace {

using namespace std::string_view_literals;

constexpr std::array kHostile{"-1"sv,
                              "0"sv,
                              "-0"sv,
                              "1e400"sv,
                              "-1e400"sv,
                              "nan"sv,
                              ".nan"sv,
                              "NaN"sv,
                              ".inf"sv,
                              "-.inf"sv,
                              "\"\""sv,
                              "''"sv,
                              "[]"sv,
                              "{}"sv,
                              "~"sv,
                              ""sv,
                              "9223372036854775807"sv,
                              "9223372036854775808"sv,
                              "18446744073709551616"sv,
                              "-9223372036854775808"sv,
                              "1e300"sv,
                              "1e-300"sv,
                              "0x10"sv,
                              "010"sv,
                              "1_000"sv,
                              "+5"sv,
                              "1."sv,
                              ".5"sv,
                              "5 5"sv,
                              "[[[[1]]]]"sv,
                              "[1, [2, {a: 3}]]"sv,
                              "{a: {b: c}}"sv,
                              "&a 3"sv,
                              "*a"sv,
                              "&a [*a]"sv,
                              "!!int 3"sv,
                              "!!binary aGk="sv,
                              "!x y"sv,
                              "yes"sv,
                              "\t3"sv,
                              "\"\\0\""sv,
                              "\"\\x07\\u0000\""sv,
                              "\"\\ud800\""sv,
                              "'"sv,
                              "\""sv,
                              "|\n  3"sv,
                              ">-\n  a\n\n  b"sv,
                              "# 3"sv,
                              "%d%s%n"sv,
                              "../../.."sv,
                              "/"sv,
                              "/dev/zero"sv,
                              "/dev/null"sv,
                              "\xc3\x28"sv,
                              "\xff"sv,
                              "\xef\xbb\xbf"sv,
                              "a: b"sv,
                              ": "sv,
                              "- 1"sv,
                              "? 1"sv};

constexpr std::array kIntegers{
    "0"sv,      "1"sv,        "2"sv,          "3"sv,          "4"sv,
    "6"sv,      "8"sv,        "64"sv,         "1000"sv,       "65536"sv,
    "100000"sv, "16777216"sv, "2147483647"sv, "1073741824"sv, "4611686018427387904"sv};
constexpr std::array kNumbers{"0"sv,      "1"sv,     "0.5"sv,  "0.001"sv, "0.999"sv, "1e-300"sv,
                              "5e-324"sv, "1e300"sv, "1e38"sv, "1e12"sv,  "1e-30"sv};
constexpr std::array kOthers{"[1, 1]"sv,      "[2, 0]"sv,
                             "[0.9, 0.9]"sv,  "[tensor]"sv,
                             "[fsdp]"sv,      "[tensor, sequence, expert, fsdp, stage, replica]"sv,
                             "{mlp: []}"sv,   "{storage: [sequence]}"sv,
                             "[attention]"sv, "{heads: [], vocab: [tensor]}"sv,
                             "[qkv, mlp]"sv,  "{storage: [fsdp, expert]}"sv,
                             "10s"sv,         "1e-3s"sv,
                             "[]"sv,          "{}"sv};

/// A value that a key of this type accepts, or may accept.
std::string fitting(std::string_view type, Draws& draws) {
  const auto says = [&](std::string_view word) { return type.find(word) != std::string_view::npos; };
  if (says(", or ") && draws.once_in(3)) return std::string(type.substr(type.rfind(' ') + 1));
  if (says("list") || says("mapping") || says("duration")) return std::string(draws.one_of(kOthers));
  if (says("integer")) return std::string(draws.one_of(kIntegers));
  if (says("number")) return std::string(draws.one_of(kNumbers));
  if (!says(" or ")) return std::string(draws.one_of(kOthers));
  std::vector<std::string> words(1);  // "a, b or c"
  for (const char c : type) {
    if (c != ' ' && c != ',')
      words.back() += c;
    else if (!words.back().empty())
      words.emplace_back();
  }
  std::erase(words, "or");
  return draws.one_of(words);
}

std::string long_text(Draws& draws) {
  const std::size_t length = std::size_t{1} << (8 + 2 * draws.below(4));
  switch (draws.below(5)) {
    case 0:
      return std::string(length, 'a');
    case 1:
      return std::string(length, '9');
    case 2:
      return std::string(length, '[');
    case 3:
      return std::string(length, '[') + std::string(length, ']');
    default:
      return '"' + std::string(length, ' ') + '"';
  }
}

std::string hostile(Draws& draws) {
  if (draws.once_in(25)) return long_text(draws);
  const std::size_t kind = draws.below(6);
  return std::string(kind == 0   ? draws.one_of(kIntegers)
                     : kind == 1 ? draws.one_of(kNumbers)
                     : kind == 2 ? draws.one_of(kOthers)
                                 : draws.one_of(kHostile));
}

/// A part of a text: [begin, end).
struct Part {
  std::size_t begin = 0, end = 0;
};

/// What stands behind each ": ", up to what ends a value on that line.
std::vector<Part> values_of(const std::string& text) {
  std::vector<Part> parts;
  for (std::size_t at = text.find(": "); at != std::string::npos; at = text.find(": ", at + 1)) {
    const std::size_t begin = at + 2;
    const bool nested = begin < text.size() && (text[begin] == '{' || text[begin] == '[');
    const std::size_t end = text.find_first_of(nested ? "}]\n" : ",}\n", begin);
    const std::size_t last = end == std::string::npos ? text.size() : end;
    parts.push_back({begin, nested && last < text.size() && text[last] != '\n' ? last + 1 : last});
  }
  return parts;
}

/// The word before each colon.
std::vector<Part> keys_of(const std::string& text) {
  std::vector<Part> parts;
  for (std::size_t at = text.find(':'); at != std::string::npos; at = text.find(':', at + 1)) {
    std::size_t begin = at;
    while (begin > 0 &&
           (std::isalnum(static_cast<unsigned char>(text[begin - 1])) != 0 || text[begin - 1] == '_'))
      --begin;
    if (begin < at) parts.push_back({begin, at});
  }
  return parts;
}

std::vector<Part> lines_of(const std::string& text) {
  std::vector<Part> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t newline = text.find('\n', begin);
    const std::size_t end = newline == std::string::npos ? text.size() : newline + 1;
    parts.push_back({begin, end});
    begin = end;
  }
  return parts;
}

std::string text_of(const std::string& text, Part part) {
  return text.substr(part.begin, part.end - part.begin);
}

void change_bytes(std::string& text, Draws& draws) {
  const std::size_t at = draws.below(text.size());
  const std::size_t length = 1 + draws.below(draws.once_in(3) ? 40 : 3);
  switch (draws.below(5)) {
    case 0:
      if (!text.empty()) text[at] = static_cast<char>(text[at] ^ (1 << draws.below(8)));
      return;
    case 1:
      text.insert(at, std::string(length, static_cast<char>(draws.below(256))));
      return;
    case 2:
      text.erase(at, length);
      return;
    case 3:
      text.insert(at, text.substr(at, length));
      return;
    default:
      constexpr std::array kMarks{":"sv, "{"sv, "}"sv, "["sv, "]"sv, ","sv, "\n"sv, "\t"sv, "#"sv,  "-"sv,
                                  "?"sv, "&"sv, "*"sv, "!"sv, "|"sv, "%"sv, "\""sv, "'"sv,  "\r"sv, " "sv};
      text.insert(at, draws.one_of(kMarks));
  }
}

void change_lines(std::string& text, Draws& draws) {
  const std::vector<Part> lines = lines_of(text);
  if (lines.empty()) return;
  const Part a = draws.one_of(lines), b = draws.one_of(lines);
  switch (draws.below(4)) {
    case 0:
      text.erase(a.begin, a.end - a.begin);
      return;
    case 1:
      text.insert(b.begin, text_of(text, a));
      return;
    case 2: {
      if (a.begin >= b.begin) return;
      const std::string first = text_of(text, a), last = text_of(text, b);
      text.replace(b.begin, last.size(), first);
      text.replace(a.begin, first.size(), last);
      return;
    }
    default:
      constexpr std::array kLines{"---\n"sv,      "...\n"sv,        "%YAML 9.9\n"sv, "%TAG ! x\n"sv,
                                  "<<: *a\n"sv,   "<<: {a: 1}\n"sv, "- x\n"sv,       "? [a, b]\n: c\n"sv,
                                  "\tkey: 1\n"sv, "  a: 1\n"sv,     "null: 1\n"sv,   "~: 1\n"sv,
                                  "\"\": 1\n"sv,  "a.b: 1\n"sv,     ".: 1\n"sv,      "a: &x {b: *x}\n"sv};
      text.insert(b.begin, draws.one_of(kLines));
  }
}

void change_value(std::string& text, Draws& draws) {
  const std::vector<Part> values = values_of(text);
  if (values.empty()) return;
  const Part value = draws.one_of(values);
  const std::string old = text_of(text, value);
  const std::string other = text_of(text, draws.one_of(values));
  const std::array<std::string, 5> wrapped{"[" + old + "]", "{a: " + old + "}", "'" + old + "'", "-" + old,
                                           old + "0000"};
  std::string now = draws.once_in(6) ? draws.one_of(wrapped) : draws.once_in(10) ? other : hostile(draws);
  text.replace(value.begin, old.size(), now);
}

void change_key(std::string& text, Draws& draws) {
  const std::vector<Part> keys = keys_of(text);
  if (keys.empty()) return;
  const Part key = draws.one_of(keys);
  std::string word = text_of(text, key);
  const std::size_t at = draws.below(word.size());
  switch (draws.below(5)) {
    case 0:
      word.erase(at, 1);
      break;
    case 1:
      word.insert(at, 1, word[at]);
      break;
    case 2:
      word[at] = static_cast<char>('a' + draws.below(26));
      break;
    case 3:
      word = text_of(text, draws.one_of(keys));
      break;
    default:
      word += ": 1, " + word;
  }
  text.replace(key.begin, key.end - key.begin, word);
}

/// Gives a key with a value, beside what its section already has.
void give_key(std::string& text, const std::string& path, const std::string& value) {
  const std::size_t dot = path.find('.');
  if (dot == std::string::npos) {
    text += path + ": " + value + '\n';
    return;
  }
  const std::string section = path.substr(0, dot), key = path.substr(dot + 1);
  const std::size_t at = text.find(section + ": {"), end = text.find('\n', at);
  const std::size_t old = text.find(key + ": ", at);
  if (at == std::string::npos) {
    text += section + ": {" + key + ": " + value + "}\n";
  } else if (old < end) {
    const std::size_t begin = old + key.size() + 2;
    const bool nested = text[begin] == '[' || text[begin] == '{';
    const std::size_t last = nested ? text.find_first_of("]}", begin) + 1 : text.find_first_of(",}\n", begin);
    text.replace(begin, std::min(last, end) - begin, value);
  } else {
    text.insert(at + section.size() + 3, key + ": " + value + ", ");
  }
}

void damage(std::string& text, std::span<const KnownKey> keys, Draws& draws) {
  switch (draws.below(9)) {
    case 0:
    case 1:
    case 2:
      return change_bytes(text, draws);
    case 3:
      return change_lines(text, draws);
    case 4:
      return change_key(text, draws);
    case 5:
      if (draws.once_in(3)) text.resize(draws.below(text.size()));
      return;
    case 6:
      if (!keys.empty()) return give_key(text, draws.one_of(keys).path, hostile(draws));
      [[fallthrough]];
    default:
      return change_value(text, draws);
  }
}

}  // namespace

std::string mutated(std::string text, std::span<const KnownKey> keys, Draws& draws) {
  const bool fits = !keys.empty() && draws.once_in(2);
  const std::size_t changes = 1 + draws.below(3);
  for (std::size_t i = 0; i < changes; ++i) {
    if (fits) {
      const KnownKey& key = draws.one_of(keys);
      give_key(text, key.path, fitting(key.type, draws));
    } else {
      damage(text, keys, draws);
    }
  }
  return text;
}

std::string printable(std::string_view text) {
  constexpr std::size_t kShown = 4000;
  std::string out;
  for (const char c : text.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    out +=
        byte == '\n' || (byte >= 0x20 && byte < 0x7F) ? std::string(1, c) : format("\\x%02x", unsigned{byte});
  }
  return text.size() > kShown ? out + format("... (%zu bytes)", text.size()) : out;
}

}  // namespace dew::testing
