#include "base/check.h"

#include <cstring>
#include <utility>

namespace dew {
namespace {

std::string joined(const std::vector<std::string>& messages) {
  std::string text;
  for (const std::string& message : messages) {
    if (!text.empty()) text += '\n';
    text += message;
  }
  return text;
}

/// A file of faults alone would fill the terminal.
std::vector<std::string> first_of(std::vector<std::string> messages) {
  constexpr std::size_t kMost = 100;
  if (messages.size() <= kMost) return messages;
  const std::size_t more = messages.size() - kMost;
  messages.resize(kMost);
  messages.push_back("and " + std::to_string(more) + " more errors");
  return messages;
}

}  // namespace

ConfigError::ConfigError(std::vector<std::string> messages)
    : ConfigError(Shortened{first_of(std::move(messages))}) {}

ConfigError::ConfigError(Shortened list)
    : Error(joined(list.messages)), messages_(std::move(list.messages)) {}

ConfigError::ConfigError(std::string message) : ConfigError(std::vector<std::string>{std::move(message)}) {}

void detail::check_failed(const char* condition, const char* file, int line, const std::string& values) {
  const char* base = std::strrchr(file, '/');
  std::string text = std::string("check failed: ") + condition + " at " + (base ? base + 1 : file) + ':' +
                     std::to_string(line);
  if (!values.empty()) text += ", values:" + values;
  throw Error(text);
}

}  // namespace dew
