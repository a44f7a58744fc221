#include "io/config.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/text.h"
#include "io/config_scalar.h"
#include "io/config_tree.h"

namespace dew {
namespace {

using Kind = ConfigValue::Kind;

/// One read: converts what is given, notes an error where that fails, records the row.
template <class T, class Convert, class Show>
T read(ConfigTree& tree, const std::string& section, const Key& key, const std::string& type, T fallback,
       Convert convert, Show show) {
  const std::string path = join_path(section, key.name);
  T value = fallback;
  if (const ConfigValue* given = tree.find(path)) {
    std::optional<T> converted = convert(*given);
    if (converted) {
      value = std::move(*converted);
    } else {
      tree.note(path, "accepted: " + type);
    }
  }
  tree.record({path, type, std::string(key.unit), show(fallback), std::string(key.meaning)}, show(value));
  return value;
}

std::string type_of(const IntegerRange& range) {
  const bool low = range.low != std::numeric_limits<std::int64_t>::min();
  const bool high = range.high != std::numeric_limits<std::int64_t>::max();
  if (low && high) return "integer, " + std::to_string(range.low) + " to " + std::to_string(range.high);
  if (low) return "integer, " + std::to_string(range.low) + " or more";
  return high ? "integer, " + std::to_string(range.high) + " or less" : "integer";
}

std::string type_of(const RealRange& range) {
  const std::string low = format_exact(range.low), high = format_exact(range.high);
  const bool bounded_low = std::isfinite(range.low), bounded_high = std::isfinite(range.high);
  if (bounded_low && bounded_high && !range.low_open && !range.high_open)
    return "number, " + low + " to " + high;
  std::string text = "number";
  if (bounded_low) text += range.low_open ? ", above " + low : ", " + low + " or more";
  if (bounded_high)
    text += (bounded_low ? " and " : ", ") + (range.high_open ? "below " + high : high + " or less");
  return text;
}

std::optional<std::int64_t> to_integer(const ConfigValue& value, const IntegerRange& range) {
  if (!value.is_scalar() || value.quoted) return std::nullopt;
  const std::optional<std::int64_t> number = parse_integer(value.text);
  return number && *number >= range.low && *number <= range.high ? number : std::nullopt;
}

std::optional<double> to_real(const ConfigValue& value, const RealRange& range) {
  if (!value.is_scalar() || value.quoted) return std::nullopt;
  const std::optional<double> number = parse_real(value.text);
  if (!number) return std::nullopt;
  const bool above = range.low_open ? *number > range.low : *number >= range.low;
  const bool below = range.high_open ? *number < range.high : *number <= range.high;
  return above && below ? number : std::nullopt;
}

std::optional<std::string> to_text(const ConfigValue& value) {
  if (!value.is_scalar()) return std::nullopt;
  const bool control = std::any_of(value.text.begin(), value.text.end(),
                                   [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
  return control ? std::nullopt : std::optional(value.text);
}

/// A list element by element; a scalar is a list of one.
template <class T, class Convert>
std::optional<std::vector<T>> to_list(const ConfigValue& value, Convert convert) {
  std::vector<T> list;
  const auto add = [&](const ConfigValue& item) {
    std::optional<T> converted = convert(item);
    if (converted) list.push_back(std::move(*converted));
    return converted.has_value();
  };
  const bool whole =
      value.kind == Kind::kList ? std::all_of(value.items.begin(), value.items.end(), add) : add(value);
  return whole ? std::optional(std::move(list)) : std::nullopt;
}

bool is_word(const ConfigValue& value, std::string_view word) {
  if (word == "null") return value.kind == Kind::kNull;
  return value.is_scalar() && value.text == word;
}

template <class T, class Convert>
auto or_word(std::string_view word, Convert convert) {
  return [word, convert](const ConfigValue& value) -> std::optional<std::optional<T>> {
    if (is_word(value, word)) return std::optional<T>();
    std::optional<T> converted = convert(value);
    return converted ? std::optional<std::optional<T>>(std::move(converted)) : std::nullopt;
  };
}

std::string show_integer(std::int64_t value) {
  return std::to_string(value);
}
std::string show_seconds(double value) {
  return format_exact(value) + "s";
}

template <class Show>
auto show_or(std::string_view word, Show show) {
  return [word, show](const auto& value) { return value ? show(*value) : std::string(word); };
}
template <class Show>
auto show_list(Show show) {
  return [show](const auto& list) {
    std::string out = "[";
    for (const auto& item : list) {
      if (out.size() > 1) out += ", ";
      out += show(item);
    }
    return out + "]";
  };
}

}  // namespace

ConfigSection ConfigSection::section(Key key) {
  return section(key, "");
}

ConfigSection ConfigSection::section(Key key, std::string_view short_key) {
  const std::string path = join_path(path_, key.name);
  tree_->open_section(path, short_key);
  return {tree_, path};
}

bool ConfigSection::has(std::string_view key) const {
  return tree_->find(join_path(path_, key)) != nullptr;
}

bool ConfigSection::changed(std::string_view key) const {
  return tree_->changed(join_path(path_, key));
}

bool ConfigSection::is_mapping(std::string_view key) const {
  const ConfigValue* value = tree_->find(join_path(path_, key));
  return value != nullptr && value->is_mapping();
}

std::int64_t ConfigSection::integer(Key key, std::int64_t fallback, IntegerRange range) {
  return read(
      *tree_, path_, key, type_of(range), fallback,
      [&](const ConfigValue& v) { return to_integer(v, range); }, show_integer);
}

double ConfigSection::real(Key key, double fallback, RealRange range) {
  return read(
      *tree_, path_, key, type_of(range), fallback, [&](const ConfigValue& v) { return to_real(v, range); },
      format_exact);
}

bool ConfigSection::boolean(Key key, bool fallback) {
  const auto convert = [](const ConfigValue& v) -> std::optional<bool> {
    if (!v.is_scalar() || v.quoted || (v.text != "true" && v.text != "false")) return std::nullopt;
    return v.text == "true";
  };
  return read(*tree_, path_, key, "true or false", fallback, convert,
              [](bool value) { return std::string(value ? "true" : "false"); });
}

std::string ConfigSection::text(Key key, std::string fallback) {
  return read(*tree_, path_, key, "text", std::move(fallback), to_text, text_yaml);
}

std::string ConfigSection::choice(Key key, std::string_view fallback,
                                  std::span<const std::string_view> accepted) {
  std::string type;
  for (std::size_t i = 0; i < accepted.size(); ++i) {
    type += std::string(i == 0 ? "" : i + 1 == accepted.size() ? " or " : ", ").append(accepted[i]);
  }
  const auto convert = [&](const ConfigValue& v) -> std::optional<std::string> {
    const bool known = v.is_scalar() && std::find(accepted.begin(), accepted.end(), v.text) != accepted.end();
    return known ? std::optional(v.text) : std::nullopt;
  };
  return read(*tree_, path_, key, type, std::string(fallback), convert,
              [](const std::string& word) { return word; });
}

std::optional<std::int64_t> ConfigSection::integer_or(Key key, std::string_view word,
                                                      std::optional<std::int64_t> fallback,
                                                      IntegerRange range) {
  const auto convert = [range](const ConfigValue& v) { return to_integer(v, range); };
  return read(*tree_, path_, key, type_of(range) + ", or " + std::string(word), fallback,
              or_word<std::int64_t>(word, convert), show_or(word, show_integer));
}

std::optional<double> ConfigSection::real_or(Key key, std::string_view word, std::optional<double> fallback,
                                             RealRange range) {
  const auto convert = [range](const ConfigValue& v) { return to_real(v, range); };
  return read(*tree_, path_, key, type_of(range) + ", or " + std::string(word), fallback,
              or_word<double>(word, convert), show_or(word, format_exact));
}

std::optional<std::string> ConfigSection::text_or(Key key, std::string_view word,
                                                  std::optional<std::string> fallback) {
  return read(*tree_, path_, key, "text, or " + std::string(word), std::move(fallback),
              or_word<std::string>(word, to_text), show_or(word, text_yaml));
}

std::int64_t ConfigSection::bytes(Key key, std::int64_t fallback) {
  const auto convert = [](const ConfigValue& v) -> std::optional<std::int64_t> {
    return v.is_scalar() && !v.quoted ? parse_bytes(v.text) : std::nullopt;
  };
  return read(*tree_, path_, key, "bytes: a count, or a number with KiB, MiB or GiB", fallback, convert,
              show_integer);
}

double ConfigSection::seconds(Key key, double fallback) {
  const auto convert = [](const ConfigValue& v) -> std::optional<double> {
    return v.is_scalar() && !v.quoted ? parse_seconds(v.text) : std::nullopt;
  };
  return read(*tree_, path_, key, "duration: a number with s, m or h", fallback, convert, show_seconds);
}

ConfigSection::StepsOrSeconds ConfigSection::steps_or_seconds(Key key, std::int64_t fallback_steps) {
  const auto convert = [](const ConfigValue& v) -> std::optional<StepsOrSeconds> {
    if (const auto steps = to_integer(v, {.low = 0})) return StepsOrSeconds{steps, std::nullopt};
    const auto seconds = v.is_scalar() && !v.quoted ? parse_seconds(v.text) : std::nullopt;
    if (!seconds || *seconds == 0) return std::nullopt;
    return StepsOrSeconds{std::nullopt, seconds};
  };
  return read(*tree_, path_, key, "steps (integer, 0 or more) or a duration (number with s, m or h, above 0)",
              StepsOrSeconds{fallback_steps, std::nullopt}, convert, [](const StepsOrSeconds& value) {
                return value.steps ? show_integer(*value.steps) : show_seconds(*value.seconds);
              });
}

std::vector<std::string> ConfigSection::texts(Key key, std::vector<std::string> fallback) {
  return read(
      *tree_, path_, key, "list of texts", std::move(fallback),
      [](const ConfigValue& v) { return to_list<std::string>(v, to_text); }, show_list(text_yaml));
}

ConfigSection::WordOrTexts ConfigSection::word_or_texts(Key key, std::string_view fallback,
                                                        std::string_view type) {
  const auto convert = [](const ConfigValue& v) -> std::optional<WordOrTexts> {
    if (v.kind != Kind::kList) {
      std::optional<std::string> word = to_text(v);
      return word && !word->empty() ? std::optional(WordOrTexts{std::move(*word), {}}) : std::nullopt;
    }
    std::optional<std::vector<std::string>> texts = to_list<std::string>(v, to_text);
    return texts ? std::optional(WordOrTexts{"", std::move(*texts)}) : std::nullopt;
  };
  return read(*tree_, path_, key, std::string(type), WordOrTexts{std::string(fallback), {}}, convert,
              [](const WordOrTexts& value) {
                return value.word.empty() ? show_list(text_yaml)(value.texts) : text_yaml(value.word);
              });
}

std::vector<std::int64_t> ConfigSection::integers(Key key, std::vector<std::int64_t> fallback,
                                                  IntegerRange range) {
  using Integers = std::vector<std::int64_t>;
  const auto item = [range](const ConfigValue& v) { return to_integer(v, range); };
  const auto convert = [&](const ConfigValue& v) -> std::optional<Integers> {
    if (v.kind == Kind::kNull) return Integers{};
    return to_list<std::int64_t>(v, item);
  };
  const auto show = [](const Integers& list) {
    return list.empty() ? "null" : show_list(show_integer)(list);
  };
  return read(*tree_, path_, key, "null, or one or a list of: " + type_of(range), std::move(fallback),
              convert, show);
}

std::vector<double> ConfigSection::reals(Key key, std::vector<double> fallback, std::size_t count,
                                         RealRange range) {
  const auto item = [range](const ConfigValue& v) { return to_real(v, range); };
  const auto convert = [&](const ConfigValue& v) {
    std::optional<std::vector<double>> list = to_list<double>(v, item);
    return list && list->size() == count ? std::move(list) : std::nullopt;
  };
  return read(*tree_, path_, key, "list of " + std::to_string(count) + ", each: " + type_of(range),
              std::move(fallback), convert, show_list(format_exact));
}

std::map<std::string, std::vector<std::string>> ConfigSection::text_lists(Key key) {
  using Lists = std::map<std::string, std::vector<std::string>>;
  const auto convert = [](const ConfigValue& v) -> std::optional<Lists> {
    if (v.kind == Kind::kNull) return Lists{};
    if (!v.is_mapping() || !v.short_form.empty()) return std::nullopt;
    Lists lists;
    for (const ConfigValue::Entry& entry : v.entries) {
      std::optional<std::vector<std::string>> list = to_list<std::string>(entry.value, to_text);
      if (!list) return std::nullopt;
      lists.emplace(entry.key, std::move(*list));
    }
    return lists;
  };
  return read(*tree_, path_, key, "mapping of words to lists of words", Lists{}, convert,
              [](const Lists& lists) {
                std::string out = "{";
                for (const auto& [name, list] : lists) {
                  if (out.size() > 1) out += ", ";
                  out += text_yaml(name) + ": " + show_list(text_yaml)(list);
                }
                return out + "}";
              });
}

void ConfigSection::error(std::string_view key, const std::string& message) {
  tree_->note(join_path(path_, key), message);
}

bool ConfigSection::faulty(std::string_view key) const {
  return tree_->faulty(join_path(path_, key));
}

Config Config::from_text(const std::string& text, const std::string& name) {
  ConfigValue root = parse_config(text, {name, false, 0});
  if (root.kind == Kind::kNull) throw ConfigError(name + ": the file is empty; accepted: a mapping of keys");
  if (!root.is_mapping()) {
    throw ConfigError(name + " (line " + std::to_string(root.line) + "): " + written(root) +
                      ": accepted: a mapping of keys");
  }
  return Config(std::make_shared<ConfigTree>(std::move(root)));
}

void Config::set(std::string_view assignment) {
  tree_->set(assignment);
}
ConfigSection Config::root() {
  return {tree_, ""};
}
void Config::note(const std::string& message) {
  tree_->note(message);
}
void Config::throw_errors() {
  tree_->throw_errors();
}
std::string Config::resolved() const {
  return tree_->resolved();
}
std::vector<KeyRow> Config::table() const {
  return tree_->table();
}

}  // namespace dew
