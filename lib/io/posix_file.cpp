#include "io/posix_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace dew {
namespace {

constexpr mode_t kMode = 0666;                    // the user's umask decides the rest
constexpr std::int64_t kLargestCall = 1ll << 30;  // Linux moves at most 2 GiB - 4 KiB a call
constexpr std::size_t kCopyBytes = 256 * 1024;

}  // namespace

std::string system_reason(int error_number) {
  return std::generic_category().message(error_number);
}

void PosixFile::fail(const char* verb) const {
  const int error_number = errno;
  throw Error(std::string("cannot ") + verb + " " + path_ + ": " + system_reason(error_number));
}

PosixFile PosixFile::open(const std::string& path, int flags) {
  PosixFile file(uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, kMode); }), path);
  if (file.descriptor_ < 0) file.fail((flags & O_CREAT) != 0 ? "make" : "open");
  return file;
}

PosixFile PosixFile::create(const std::string& path) {
  return open(path, O_WRONLY | O_CREAT | O_TRUNC);
}
PosixFile PosixFile::open_to_write(const std::string& path) {
  return open(path, O_WRONLY);
}
PosixFile PosixFile::open_to_append(const std::string& path) {
  return open(path, O_WRONLY | O_APPEND);
}
PosixFile PosixFile::open_to_read(const std::string& path) {
  return open(path, O_RDONLY);
}

PosixFile PosixFile::in_memory() {
  PosixFile file(memfd_create("checkpoint metadata", MFD_CLOEXEC), "a file in memory");
  if (file.descriptor_ < 0) file.fail("make");
  file.path_ = "/proc/self/fd/" + std::to_string(file.descriptor_);
  return file;
}

PosixFile::PosixFile(PosixFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

PosixFile& PosixFile::operator=(PosixFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  return *this;
}

PosixFile::~PosixFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void PosixFile::write_at(std::int64_t offset, const void* from, std::int64_t bytes) const {
  const char* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const auto count = static_cast<std::size_t>(std::min(bytes, kLargestCall));
    const ssize_t done = uninterrupted([&] { return ::pwrite(descriptor_, at, count, offset); });
    if (done == 0) errno = EIO;
    if (done <= 0) fail("write");
    at += done;
    offset += done;
    bytes -= done;
  }
}

void PosixFile::append(const void* from, std::int64_t bytes) const {
  const char* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const auto count = static_cast<std::size_t>(std::min(bytes, kLargestCall));
    const ssize_t done = uninterrupted([&] { return ::write(descriptor_, at, count); });
    if (done == 0) errno = EIO;
    if (done <= 0) fail("write");
    at += done;
    bytes -= done;
  }
}

std::int64_t PosixFile::read_at(std::int64_t offset, void* into, std::int64_t bytes) const {
  char* at = static_cast<char*>(into);
  std::int64_t total = 0;
  while (total < bytes) {
    const auto count = static_cast<std::size_t>(std::min(bytes - total, kLargestCall));
    const ssize_t done =
        uninterrupted([&] { return ::pread(descriptor_, at + total, count, offset + total); });
    if (done < 0) fail("read");
    if (done == 0) break;
    total += done;
  }
  return total;
}

void PosixFile::reserve(std::int64_t bytes) const {
  int status = uninterrupted([&] { return ::fallocate(descriptor_, 0, 0, bytes); });
  // A file system that cannot reserve gives the length alone; lack of space then shows in the writes.
  if (status != 0 && (errno == EOPNOTSUPP || errno == ENOSYS))
    status = uninterrupted([&] { return ::ftruncate(descriptor_, bytes); });
  if (status != 0) fail("reserve space for");
}

void PosixFile::copy_written_to(const PosixFile& target) const {
  std::array<char, kCopyBytes> buffer;
  std::int64_t end = 0;
  while (true) {
    const std::int64_t begin = ::lseek(descriptor_, end, SEEK_DATA);
    if (begin < 0 && errno == ENXIO) return;  // only a hole is left
    if (begin < 0) fail("read");
    end = ::lseek(descriptor_, begin, SEEK_HOLE);
    if (end < 0) fail("read");
    for (std::int64_t at = begin; at < end;) {
      const std::int64_t done = read_at(at, buffer.data(), std::min<std::int64_t>(end - at, kCopyBytes));
      if (done == 0) throw Error(path_ + " became shorter while it was copied");
      target.write_at(at, buffer.data(), done);
      at += done;
    }
  }
}

std::int64_t PosixFile::bytes() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) fail("examine");
  return status.st_size;
}

void PosixFile::sync() const {
  if (uninterrupted([&] { return ::fsync(descriptor_); }) != 0) fail("make durable");
}

void PosixFile::close() {
  // Linux frees the descriptor even when close is interrupted, so there is no second try.
  if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) fail("close");
}

}  // namespace dew
