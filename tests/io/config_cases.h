// Reading small run descriptions and the messages that they give.
#pragma once

#include <string>
#include <vector>

#include "base/check.h"
#include "io/config.h"

namespace dew::config_cases {

using Messages = std::vector<std::string>;

inline Config parse(const std::string& text) {
  return Config::from_text(text, "run.yaml");
}

/// The messages of the ConfigError that `f` throws; empty when it throws none.
template <class F>
Messages errors_of(F&& f) {
  try {
    f();
  } catch (const ConfigError& error) {
    return error.messages();
  }
  return {};
}

}  // namespace dew::config_cases
