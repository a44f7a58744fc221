// Lines for people. Only rank 0 prints, apart from errors; the sink is a parameter, never a global.
#pragma once

#include <cstdio>
#include <string_view>

namespace dew {

class Log {
 public:
  /// Prints to `sink` when `enabled` (rank 0), else drops every line.
  Log(std::FILE* sink, bool enabled) : sink_(sink), enabled_(enabled) {}

  /// One line, flushed, so that it is seen even when the program ends at once.
  void line(std::string_view text) const {
    if (!enabled_) return;
    std::fprintf(sink_, "%.*s\n", static_cast<int>(text.size()), text.data());
    std::fflush(sink_);
  }
  bool enabled() const { return enabled_; }
  std::FILE* sink() const { return sink_; }

 private:
  std::FILE* sink_;
  bool enabled_;
};

}  // namespace dew
