// Prints the tests of a job as one: failures at once and with their rank, results once, agreed between ranks.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "comm/host_group.h"
#include "support/hang_guard.h"

namespace dew::testing {

class RankListener : public ::testing::EmptyTestEventListener {
 public:
  /// `ranks` must outlive the listener; the tests must not use it.
  explicit RankListener(const HostGroup& ranks);

  void OnTestStart(const ::testing::TestInfo& test) override;
  void OnTestPartResult(const ::testing::TestPartResult& result) override;
  void OnTestEnd(const ::testing::TestInfo& test) override;  ///< collective over the ranks
  void OnTestProgramEnd(const ::testing::UnitTest& program) override;

  bool failed() const { return !failures_.empty(); }  ///< on any rank

 private:
  const HostGroup& ranks_;
  std::string label_;  // "rank 1/4"
  HangGuard guard_;
  std::vector<std::string> failures_;
};

}  // namespace dew::testing
