#include "io/durable_file.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/check.h"
#include "base/text.h"
#include "io/posix_file.h"

namespace dew {
namespace {

/// Removes a file at the end of its scope unless it was kept.
class Unfinished {
 public:
  explicit Unfinished(std::string path) : path_(std::move(path)) {}
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  void keep() { path_.clear(); }

 private:
  std::string path_;
};

std::string parent_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace

void sync_path(const std::string& path) {
  PosixFile::open_to_read(path).sync();
}

void publish_file(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0)
    throw Error("cannot rename " + from + " to " + to + ": " + system_reason(errno));
  sync_path(parent_of(to));
}

void write_file_durably(const std::string& path, std::string_view text) {
  const std::string partial =
      parent_of(path) + "/." + std::filesystem::path(path).filename().string() + ".partial";
  PosixFile file = PosixFile::create(partial);
  Unfinished unfinished(partial);
  file.write_at(0, text.data(), static_cast<std::int64_t>(text.size()));
  file.sync();
  file.close();
  publish_file(partial, path);
  unfinished.keep();
}

void make_writable_directory(const std::string& path, std::string_view key) {
  const auto refuse = [&](const std::string& reason) {
    throw ConfigError(std::string(key) + ": " + path + ": no files can be made there (" + reason +
                      "); accepted: a directory that can be written or made");
  };
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) refuse(error.message());
  std::string probe;
  const int descriptor = uninterrupted([&] {
    probe = path + "/.probe_XXXXXX";  // a call that fails leaves no X
    return ::mkstemp(probe.data());
  });
  if (descriptor < 0) refuse(system_reason(errno));
  ::close(descriptor);
  ::unlink(probe.c_str());
}

void require_space(const std::string& directory, std::int64_t bytes) {
  struct statvfs disk {};
  if (uninterrupted([&] { return ::statvfs(directory.c_str(), &disk); }) != 0)
    throw Error("cannot examine " + directory + ": " + system_reason(errno));
  const double free_bytes = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  if (static_cast<double>(bytes) > free_bytes)
    throw Error(format("%s: %lld bytes (%s) are needed and %.0f bytes (%s) are free: ", directory.c_str(),
                       static_cast<long long>(bytes), format_bytes(static_cast<double>(bytes)).c_str(),
                       free_bytes, format_bytes(free_bytes).c_str()) +
                system_reason(ENOSPC));
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      static_cast<double>(bytes) > static_cast<double>(limit.rlim_cur))
    throw Error(format("%s: a file of %lld bytes is needed and this process may write %llu (ulimit -f): ",
                       directory.c_str(), static_cast<long long>(bytes),
                       static_cast<unsigned long long>(limit.rlim_cur)) +
                system_reason(EFBIG));
}

}  // namespace dew
