// Turns a hang into a message: a thread that ends the process when one test takes longer than a limit.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace dew::testing {

class HangGuard {
 public:
  /// `label` names this process in the message. On expiry the process exits with status 1, and mpirun ends
  /// the rest.
  HangGuard(std::string label, std::chrono::seconds limit);
  HangGuard(const HangGuard&) = delete;
  HangGuard& operator=(const HangGuard&) = delete;
  ~HangGuard();

  void begin(const std::string& test);
  void end();

 private:
  void watch();

  std::string label_;
  std::chrono::seconds limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string test_;  // empty: none running
  std::chrono::steady_clock::time_point deadline_;
  bool stop_ = false;
  std::thread thread_;
};

/// DEW_TEST_LIMIT in seconds, or 90.
std::chrono::seconds test_limit();

}  // namespace dew::testing
