#include "io/config_value.h"

#include "base/text.h"
#include "io/config_scalar.h"

namespace dew {
namespace {

constexpr std::size_t kShownBytes = 72;
constexpr std::size_t kEnough = 2 * kShownBytes;  // what follows is cut off anyway

void append(std::string& out, const ConfigValue& value) {
  if (out.size() > kEnough) return;
  switch (value.kind) {
    case ConfigValue::Kind::kNull:
      out += "null";
      return;
    case ConfigValue::Kind::kScalar:
      out += value.quoted ? quoted_yaml(value.text) : value.text;
      return;
    case ConfigValue::Kind::kList:
      out += '[';
      for (const ConfigValue& item : value.items) {
        if (out.size() > kEnough) return;
        if (&item != &value.items.front()) out += ", ";
        append(out, item);
      }
      out += ']';
      return;
    case ConfigValue::Kind::kMapping:
      if (!value.short_form.empty()) return append(out, value.short_form.front());
      out += '{';
      for (const ConfigValue::Entry& entry : value.entries) {
        if (out.size() > kEnough) return;
        if (&entry != &value.entries.front()) out += ", ";
        out += entry.key + ": ";
        append(out, entry.value);
      }
      out += '}';
  }
}

}  // namespace

const ConfigValue* ConfigValue::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

ConfigValue* ConfigValue::find(std::string_view key) {
  for (Entry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

std::string shown(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (out.size() >= kShownBytes && (static_cast<unsigned char>(c) & 0xC0) != 0x80) return out + "...";
    if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += format("\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  return out;
}

std::string written(const ConfigValue& value) {
  std::string text;
  append(text, value);
  return shown(text);
}

}  // namespace dew
