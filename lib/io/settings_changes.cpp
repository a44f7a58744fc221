#include "io/settings_changes.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/check.h"
#include "io/config_tree.h"

namespace dew {
namespace {

constexpr std::array<std::string_view, 7> kLearned{"run.steps", "model",    "precision", "data",
                                                   "optimizer", "schedule", "ema"};

bool same(const ConfigValue& a, const ConfigValue& b) {
  const auto same_entry = [](const ConfigValue::Entry& x, const ConfigValue::Entry& y) {
    return x.key == y.key && same(x.value, y.value);
  };
  return a.kind == b.kind && a.text == b.text &&
         std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same) &&
         std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(), same_entry);
}

bool is_learned(std::string_view path) {
  return std::any_of(kLearned.begin(), kLearned.end(), [path](std::string_view part) {
    return path == part || (path.starts_with(part) && path[part.size()] == '.');
  });
}

void compare(const ConfigValue& before, const ConfigValue& now, const std::string& path,
             std::vector<std::string>& changes) {
  if (before.is_mapping() && now.is_mapping()) {
    for (const ConfigValue::Entry& entry : now.entries)
      if (const ConfigValue* old = before.find(entry.key))
        compare(*old, entry.value, join_path(path, entry.key), changes);
  } else if (is_learned(path) && !same(before, now)) {
    changes.push_back("changed since the checkpoint: " + path + " " + written(now) + " (was " +
                      written(before) + ")");
  }
}

}  // namespace

std::vector<std::string> settings_changes(const std::string& before, const std::string& now) {
  std::vector<std::string> changes;
  try {
    compare(parse_config(before, {.name = "its settings", .by_program = true}),
            parse_config(now, {.name = "settings", .by_program = true}), "", changes);
  } catch (const ConfigError& error) {  // boundary: a saved text must not end the run
    changes.push_back(std::string("what changed since the checkpoint is not known: ") + error.what());
  }
  return changes;
}

}  // namespace dew
