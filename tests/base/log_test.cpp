#include "base/log.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>

#include "base/timer.h"

namespace dew {
namespace {

/// What a log writes into an anonymous file.
std::string written(bool enabled) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), &std::fclose);
  const Log log(file.get(), enabled);
  log.line("step 10 of 20");
  log.line("100%s is no pattern");
  std::string text(static_cast<std::size_t>(std::ftell(file.get())), '\0');
  std::rewind(file.get());
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  return text;
}

TEST(Log, WritesWholeLinesAsTheyAre) {
  EXPECT_EQ(written(true), "step 10 of 20\n100%s is no pattern\n");
}

TEST(Log, DropsLinesOfOtherRanks) {
  EXPECT_EQ(written(false), "");
}

TEST(ScopeTimer, AddsToATotal) {
  double total = 5;

  { const ScopeTimer timer(total); }
  const double first = total;
  { const ScopeTimer timer(total); }

  EXPECT_GE(first, 5);
  EXPECT_GE(total, first);
}

}  // namespace
}  // namespace dew
