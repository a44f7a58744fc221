// A file descriptor whose every refusal is an Error with the system's own reason.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string>

namespace dew {

/// The system's text for an error number, such as ENOSPC.
std::string system_reason(int error_number);

/// Makes a call of the system again while signals interrupt it: handlers without SA_RESTART do so.
template <class Call>
auto uninterrupted(Call&& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

class PosixFile {
 public:
  /// Makes an empty file for writing, in place of an old one. Throws Error.
  static PosixFile create(const std::string& path);
  /// An existing file for writing only: a network file system then sends the written bytes and reads nothing
  /// back, so that hosts may write disjoint bytes of one page. Throws Error.
  static PosixFile open_to_write(const std::string& path);
  static PosixFile open_to_append(const std::string& path);  ///< an existing file
  static PosixFile open_to_read(const std::string& path);    ///< or a directory
  /// A file that lives in memory until closed and has a path only within this process.
  static PosixFile in_memory();

  PosixFile(PosixFile&& other) noexcept;
  PosixFile& operator=(PosixFile&& other) noexcept;
  ~PosixFile();  ///< closes; what the system says is lost, so a writer calls close()

  /// Writes `bytes` bytes at `offset` bytes, in as many calls as the system needs. Throws Error.
  void write_at(std::int64_t offset, const void* from, std::int64_t bytes) const;
  /// Writes `bytes` bytes at the end of a file opened to append. Throws Error.
  void append(const void* from, std::int64_t bytes) const;
  /// Reads `bytes` bytes at `offset` bytes; returns how many there were before the end of the file. Throws
  /// Error.
  std::int64_t read_at(std::int64_t offset, void* into, std::int64_t bytes) const;
  /// Sets the length to `bytes` and takes the space from the disk now, where the file system can. Throws
  /// Error when it is not there.
  void reserve(std::int64_t bytes) const;
  /// Copies the bytes that were ever written here to the same offsets of `target`; holes are left out. Throws
  /// Error.
  void copy_written_to(const PosixFile& target) const;
  std::int64_t bytes() const;  ///< length of the file
  /// fsync: what was written through any descriptor is on the device. Throws Error.
  void sync() const;
  /// Throws Error for what the system only tells at the end.
  void close();

  const std::string& path() const { return path_; }

 private:
  PosixFile(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  static PosixFile open(const std::string& path, int flags);
  [[noreturn]] void fail(const char* verb) const;

  int descriptor_ = -1;
  std::string path_;
};

}  // namespace dew
