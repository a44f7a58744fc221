#include "support/hang_guard.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace dew::testing {

HangGuard::HangGuard(std::string label, std::chrono::seconds limit)
    : label_(std::move(label)), limit_(limit), thread_([this] { watch(); }) {}

HangGuard::~HangGuard() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void HangGuard::begin(const std::string& test) {
  {
    const std::lock_guard lock(mutex_);
    test_ = test;
    deadline_ = std::chrono::steady_clock::now() + limit_;
  }
  changed_.notify_one();
}

void HangGuard::end() {
  const std::lock_guard lock(mutex_);
  test_.clear();
}

void HangGuard::watch() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (test_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const std::string watched = test_;
    changed_.wait_until(lock, deadline_);
    if (stop_ || test_ != watched || std::chrono::steady_clock::now() < deadline_) continue;
    std::fprintf(stderr, "[%s] %s hangs: no end after %lld s\n", label_.c_str(), test_.c_str(),
                 static_cast<long long>(limit_.count()));
    std::fflush(stderr);
    std::_Exit(1);
  }
}

std::chrono::seconds test_limit() {
  const char* text = std::getenv("DEW_TEST_LIMIT");
  const int seconds = text == nullptr ? 0 : std::atoi(text);
  return std::chrono::seconds(seconds > 0 ? seconds : 90);
}

}  // namespace dew::testing
