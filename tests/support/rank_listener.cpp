#include "support/rank_listener.h"

#include <cstdio>

namespace dew::testing {

namespace {

std::string name_of(const ::testing::TestInfo& test) {
  return std::string(test.test_suite_name()) + '.' + test.name();
}

}  // namespace

RankListener::RankListener(const HostGroup& ranks)
    : ranks_(ranks),
      label_("rank " + std::to_string(ranks.rank()) + '/' + std::to_string(ranks.size())),
      guard_(label_, test_limit()) {}

void RankListener::OnTestStart(const ::testing::TestInfo& test) {
  guard_.begin(name_of(test));
}

void RankListener::OnTestPartResult(const ::testing::TestPartResult& result) {
  if (!result.failed()) return;
  // One write a message, so that the ranks' lines do not mix.
  const std::string text = '[' + label_ + "] " + (result.file_name() == nullptr ? "?" : result.file_name()) +
                           ':' + std::to_string(result.line_number()) + ": " + result.message() + '\n';
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

void RankListener::OnTestEnd(const ::testing::TestInfo& test) {
  const std::vector<std::string> results = ranks_.gather(test.result()->Failed() ? "failed" : "");
  guard_.end();
  std::string where;
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    if (!results[rank].empty()) where += (where.empty() ? " on ranks " : ", ") + std::to_string(rank);
  }
  if (!where.empty()) failures_.push_back(name_of(test) + where);
  if (ranks_.rank() != 0) return;
  std::printf("%s %s%s (%lld ms)\n", where.empty() ? "[ ok ]" : "[FAIL]", name_of(test).c_str(),
              where.c_str(), static_cast<long long>(test.result()->elapsed_time()));
  std::fflush(stdout);
}

void RankListener::OnTestProgramEnd(const ::testing::UnitTest& program) {
  if (ranks_.rank() != 0) return;
  std::printf("%d tests on %d ranks, %zu failed\n", program.test_to_run_count(), ranks_.size(),
              failures_.size());
  for (const std::string& failure : failures_) std::printf("  %s\n", failure.c_str());
  std::fflush(stdout);
}

}  // namespace dew::testing
