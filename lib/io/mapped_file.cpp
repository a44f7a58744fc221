#include "io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "io/posix_file.h"

namespace dew {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

[[noreturn]] void refuse(std::string_view key, const std::string& path, const std::string& reason) {
  throw ConfigError(std::string(key) + ": " + path + ": " + reason);
}

}  // namespace

MappedFile::MappedFile(const std::string& path, std::string_view key) {
  // Without O_NONBLOCK a pipe without a writer would hang here instead of being refused below.
  const Descriptor file(
      uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }));
  struct stat status {};
  if (file.number() < 0 || ::fstat(file.number(), &status) != 0) refuse(key, path, system_reason(errno));
  if (!S_ISREG(status.st_mode)) refuse(key, path, "not a regular file");
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;  // an empty mapping is an error to the system
  void* block = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.number(), 0);
  if (block == MAP_FAILED) refuse(key, path, std::string("cannot be mapped: ") + system_reason(errno));
  first_ = static_cast<const std::byte*>(block);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : first_(std::exchange(other.first_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (first_ != nullptr) ::munmap(const_cast<std::byte*>(first_), size_);
}

void MappedFile::will_need(std::int64_t begin, std::int64_t count) const {
  const auto size = static_cast<std::int64_t>(size_);
  const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  const std::int64_t first = std::clamp<std::int64_t>(begin, 0, size) / page * page;
  const std::int64_t end = std::clamp<std::int64_t>(begin + count, 0, size);
  if (first_ == nullptr || end <= first) return;
  ::madvise(const_cast<std::byte*>(first_) + first, static_cast<std::size_t>(end - first), MADV_WILLNEED);
}

}  // namespace dew
