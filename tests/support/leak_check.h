// The leak checker around MPI, in builds that have one. MPI opens and closes plugins while it starts and
// ends; what they leak can no longer be told by its origin, so it is kept out here instead of being
// suppressed by name.
#pragma once

// Weak: null in a build without the checker.
extern "C" {
// NOLINTNEXTLINE(readability-identifier-naming): the checker's own name
[[gnu::weak]] void __lsan_disable();
// NOLINTNEXTLINE(readability-identifier-naming): the checker's own name
[[gnu::weak]] void __lsan_enable();
// NOLINTNEXTLINE(readability-identifier-naming): the checker's own name
[[gnu::weak]] int __lsan_do_recoverable_leak_check();
}

namespace dew::testing {

/// Memory allocated on this thread in this scope never counts as leaked.
class LeaksAllowed {
 public:
  LeaksAllowed() {
    if (__lsan_disable != nullptr) __lsan_disable();
  }
  LeaksAllowed(const LeaksAllowed&) = delete;
  LeaksAllowed& operator=(const LeaksAllowed&) = delete;
  ~LeaksAllowed() {
    if (__lsan_enable != nullptr) __lsan_enable();
  }
};

/// Looks for leaks now, while MPI's plugins are loaded; prints them and returns true when there are any.
inline bool leaks() {
  return __lsan_do_recoverable_leak_check != nullptr && __lsan_do_recoverable_leak_check() != 0;
}

}  // namespace dew::testing
