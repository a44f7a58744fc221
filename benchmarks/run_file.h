// The run description of a benchmark's command line.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include "io/config.h"
#include "options.h"

namespace dew::bench {

/// The file with the overrides, and then `more` ones.
inline Config read_config(const Options& options, const std::vector<std::string>& more = {}) {
  std::ostringstream text;
  text << std::ifstream(options.file).rdbuf();
  Config config = Config::from_text(text.str(), options.file);
  for (const std::string& assignment : options.overrides) config.set(assignment);
  for (const std::string& assignment : more) config.set(assignment);
  return config;
}

}  // namespace dew::bench
