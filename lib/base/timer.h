// Wall-clock intervals in seconds, from the steady clock.
#pragma once

#include <chrono>

namespace dew {

/// Seconds since an arbitrary fixed point.
inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Adds the seconds of its own life to a total.
class ScopeTimer {
 public:
  explicit ScopeTimer(double& total) : total_(total), start_(steady_seconds()) {}
  ScopeTimer(const ScopeTimer&) = delete;
  ScopeTimer& operator=(const ScopeTimer&) = delete;
  ~ScopeTimer() { total_ += steady_seconds() - start_; }

 private:
  double& total_;
  double start_;
};

}  // namespace dew
