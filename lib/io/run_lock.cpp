#include "io/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>

#include "base/check.h"
#include "base/text.h"
#include "comm/mpi_env.h"
#include "io/posix_file.h"

namespace dew {

RunLock::RunLock(const std::string& folder) {
  const std::string path = folder + "/.lock";
  descriptor_ = uninterrupted([&path] { return open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666); });
  if (descriptor_ < 0) throw ConfigError("run.dir: cannot open " + path + ": " + system_reason(errno));
  if (uninterrupted([this] { return flock(descriptor_, LOCK_EX | LOCK_NB); }) != 0) {
    const int reason = errno;
    std::array<char, 256> holder{};
    const ssize_t bytes = read(descriptor_, holder.data(), holder.size() - 1);
    close(descriptor_);
    if (reason != EWOULDBLOCK)
      throw ConfigError("run.dir: cannot lock " + path + ": " + system_reason(reason));
    throw ConfigError(format("run.dir: %s is in use by another run%s%s; accepted: another run.dir",
                             folder.c_str(), bytes > 0 ? " on " : "", holder.data()));
  }
  const std::string self = format("host %s, process %d", host_name().c_str(), getpid());
  const bool written = ftruncate(descriptor_, 0) == 0 &&
                       pwrite(descriptor_, self.data(), self.size(), 0) == static_cast<ssize_t>(self.size());
  if (!written) {
    close(descriptor_);
    throw ConfigError("run.dir: cannot write " + path);
  }
}

RunLock::~RunLock() {
  close(descriptor_);
}

}  // namespace dew
