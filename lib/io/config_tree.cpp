#include "io/config_tree.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "io/config_scalar.h"

namespace dew {
namespace {

constexpr std::int64_t kOrdersPerOverride = std::int64_t{1} << 21;  // above the values that 1 MiB can hold

std::string located(const std::string& path, const ConfigValue& value) {
  return path + (value.line > 0 ? " (line " + std::to_string(value.line) + ")" : " (--set)");
}

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> parts(1);
  for (char c : path) {
    if (c == '.') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// The value at a path below `root`, const or not as `root` is, or nullptr.
template <class Value>
Value* value_at(Value& root, std::string_view path) {
  Value* value = &root;
  if (path.empty()) return value;
  for (const std::string& part : split_path(path)) {
    value = value->find(part);
    if (value == nullptr) return nullptr;
  }
  return value;
}

}  // namespace

std::string join_path(std::string_view section, std::string_view key) {
  std::string path(section);
  if (!path.empty() && !key.empty()) path += '.';
  return path.append(key);
}

const ConfigValue* ConfigTree::find(std::string_view path) const {
  return value_at(root_, path);
}

void ConfigTree::set(std::string_view assignment) {
  const std::string name = "--set " + shown(assignment);
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) throw ConfigError(name + ": accepted: key.path=value");
  const std::vector<std::string> parts = split_path(assignment.substr(0, equals));
  for (const std::string& part : parts) {
    const bool word = !part.empty() && std::none_of(part.begin(), part.end(), [](char c) {
      return static_cast<unsigned char>(c) <= ' ' || c == 0x7F;
    });
    if (!word)
      throw ConfigError(name + ": a word of the path is empty or holds a space; accepted: key.path=value");
  }
  const std::int64_t order = ++overrides_ * kOrdersPerOverride;
  ConfigValue value = parse_config(std::string(assignment.substr(equals + 1)), {name, true, order});

  ConfigValue* at = &root_;
  for (const std::string& part : parts) {
    const std::optional<std::int64_t> index = parse_integer(part);
    if (at->kind == ConfigValue::Kind::kList && index) {
      if (*index < 0 || *index >= static_cast<std::int64_t>(at->items.size())) {
        throw ConfigError(name + ": the list has " + std::to_string(at->items.size()) +
                          " elements, counted from 0");
      }
      at = &at->items[static_cast<std::size_t>(*index)];
      continue;
    }
    if (!at->is_mapping()) {  // whether a value may stand for a section is known only when the section is
                              // read
      ConfigValue mapping;
      mapping.kind = ConfigValue::Kind::kMapping;
      mapping.order = at->kind == ConfigValue::Kind::kNull ? order : at->order;
      mapping.line = at->line;
      if (at->kind != ConfigValue::Kind::kNull) mapping.short_form.push_back(std::move(*at));
      *at = std::move(mapping);
    }
    ConfigValue* next = at->find(part);
    if (next == nullptr) {
      at->entries.push_back({part, {}});
      next = &at->entries.back().value;
    }
    at = next;
  }
  *at = std::move(value);
}

void ConfigTree::know(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  const std::string section = dot == std::string::npos ? "" : path.substr(0, dot);
  const std::string name = dot == std::string::npos ? path : path.substr(dot + 1);
  std::vector<std::string>& names = children_[section];
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

void ConfigTree::open_section(const std::string& path, std::string_view short_key) {
  sections_.insert(path);
  know(path);
  ConfigValue* given = value_at(root_, path);
  if (given == nullptr || given->kind == ConfigValue::Kind::kNull) return;
  if (!given->is_mapping()) {
    if (short_key.empty()) return note(path, "accepted: a mapping of keys");
    ConfigValue mapping;
    mapping.kind = ConfigValue::Kind::kMapping;
    mapping.line = given->line;
    mapping.order = given->order;
    mapping.short_form.push_back(std::move(*given));
    *given = std::move(mapping);
  }
  if (given->short_form.empty()) return;
  if (short_key.empty()) return note(path, "accepted: a mapping of keys");
  ConfigValue value = std::move(given->short_form.front());
  given->short_form.clear();
  // An override of the key itself comes after the short form and wins.
  if (given->find(short_key) == nullptr) given->entries.push_back({std::string(short_key), std::move(value)});
}

void ConfigTree::record(KeyRow row, std::string yaml) {
  know(row.path);
  const auto [found, added] = row_of_.emplace(row.path, rows_.size());
  if (added) {
    rows_.push_back({std::move(row), std::move(yaml)});
  } else {
    rows_[found->second].yaml = std::move(yaml);
  }
}

std::int64_t ConfigTree::order_of(std::string_view path) const {
  for (;;) {
    if (const ConfigValue* value = find(path); value != nullptr && !path.empty()) return value->order;
    const std::size_t dot = path.rfind('.');
    if (dot == std::string_view::npos) return std::numeric_limits<std::int64_t>::max();
    path = path.substr(0, dot);
  }
}

void ConfigTree::note(std::string text) {
  noted_.push_back({std::numeric_limits<std::int64_t>::max(), std::move(text)});
}

void ConfigTree::note(const std::string& path, const std::string& message) {
  std::string text = path;
  if (const ConfigValue* value = find(path)) {
    text = located(path, *value);
    const bool whole_section = sections_.contains(path) && value->is_mapping() && value->short_form.empty();
    if (!whole_section) text += ": " + written(*value);
  } else if (const auto row = row_of_.find(path); row != row_of_.end()) {
    text += " (default): " + rows_[row->second].yaml;
  }
  // A refused key is not reported a second time as unknown.
  const std::size_t dot = path.rfind('.');
  if (dot == std::string::npos || sections_.contains(path.substr(0, dot))) know(path);
  text += ": " + message;
  const std::int64_t order = order_of(path);
  if (noted_texts_.insert(text).second) noted_.push_back({order, std::move(text), path});
}

bool ConfigTree::faulty(std::string_view path) const {
  return std::any_of(noted_.begin(), noted_.end(), [path](const Noted& noted) {
    return noted.path.starts_with(path) &&
           (noted.path.size() == path.size() || noted.path[path.size()] == '.');
  });
}

std::string ConfigTree::suggestion(const std::string& section, const std::string& key) const {
  for (const auto& [path, names] : children_) {
    if (std::find(names.begin(), names.end(), key) != names.end()) return join_path(path, key);
  }
  const auto own = children_.find(section);
  if (own != children_.end()) {
    const std::string near = nearest_word(key, own->second);
    if (!near.empty()) return join_path(section, near);
  }
  std::vector<std::string> all;
  for (const auto& [path, names] : children_) all.insert(all.end(), names.begin(), names.end());
  const std::string near = nearest_word(key, all);
  for (const auto& [path, names] : children_) {
    if (std::find(names.begin(), names.end(), near) != names.end()) return join_path(path, near);
  }
  return "";
}

void ConfigTree::collect_unknown(const ConfigValue& mapping, const std::string& path,
                                 std::vector<Noted>& errors) const {
  const auto known = children_.find(path);
  for (const ConfigValue::Entry& entry : mapping.entries) {
    const std::string child = join_path(path, entry.key);
    if (known != children_.end() &&
        std::find(known->second.begin(), known->second.end(), entry.key) != known->second.end()) {
      if (sections_.contains(child)) collect_unknown(entry.value, child, errors);
      continue;
    }
    const std::string near = suggestion(path, entry.key);
    std::string text = located(shown(child), entry.value) + ": unknown key; ";
    if (!near.empty()) {
      text += "did you mean " + near + "?";
    } else {
      text += "accepted here:";
      if (known != children_.end()) {
        for (const std::string& name : known->second)
          text += (name == known->second.front() ? " " : ", ") + name;
      }
    }
    errors.push_back({entry.value.order, std::move(text)});
  }
}

bool ConfigTree::changed(std::string_view path) const {
  const auto row = row_of_.find(path);
  return row != row_of_.end() && rows_[row->second].yaml != rows_[row->second].key.default_text;
}

void ConfigTree::throw_errors() const {
  std::vector<Noted> errors = noted_;
  collect_unknown(root_, "", errors);
  if (errors.empty()) return;
  std::stable_sort(errors.begin(), errors.end(),
                   [](const Noted& a, const Noted& b) { return a.order < b.order; });
  std::vector<std::string> messages;
  messages.reserve(errors.size());
  for (Noted& error : errors) messages.push_back(std::move(error.text));
  throw ConfigError(std::move(messages));
}

void ConfigTree::write_section(const std::string& path, int depth, std::string& out) const {
  const auto known = children_.find(path);
  if (known == children_.end()) return;
  for (const std::string& name : known->second) {
    const std::string child = join_path(path, name);
    const std::string indent(static_cast<std::size_t>(2 * depth), ' ');
    if (sections_.contains(child)) {
      std::string body;
      write_section(child, depth + 1, body);
      if (!body.empty()) {
        out += indent + name + ":\n" + body;
      } else if (find(child) != nullptr) {
        out += indent + name + ": {}\n";
      }
    } else if (const auto row = row_of_.find(child); row != row_of_.end()) {
      out += indent + name + ": " + rows_[row->second].yaml + '\n';
    }
  }
}

std::string ConfigTree::resolved() const {
  std::string out;
  write_section("", 0, out);
  return out;
}

std::vector<KeyRow> ConfigTree::table() const {
  std::vector<KeyRow> rows;
  for (const Row& row : rows_) rows.push_back(row.key);
  return rows;
}

}  // namespace dew
