// One run at a time in a folder.
#pragma once

#include <string>

namespace dew {

/// Holds FOLDER/.lock for as long as it lives, by a lock of the system that ends with the process. Throws
/// ConfigError (path run.dir) when another run holds it, naming that run's host and process. On a file system
/// without locks it throws too.
class RunLock {
 public:
  explicit RunLock(const std::string& folder);
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;
  ~RunLock();

 private:
  int descriptor_;
};

}  // namespace dew
