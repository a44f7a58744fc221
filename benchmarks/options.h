// The command line that benchmarks of whole runs share: RUN.yaml [--COUNT N] [--set key.path=value]...
#pragma once

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct Options {
  std::string file;
  int count = 0;
  std::vector<std::string> overrides;
};

/// `flag` names the count ("--steps"), `count` is its default.
inline Options parse_options(std::span<char*> arguments, std::string_view flag, int count) {
  Options options;
  options.count = count;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == flag && i + 1 < arguments.size())
      options.count = std::max(1, std::atoi(arguments[++i]));
    else if (argument == "--set" && i + 1 < arguments.size())
      options.overrides.emplace_back(arguments[++i]);
    else
      options.file = argument;
  }
  return options;
}
