// A file mapped into memory for reading. Its size is that at opening: a file that is cut short later ends the
// process when a lost page is touched, so files of a running job must not be rewritten in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace dew {

class MappedFile {
 public:
  /// Throws ConfigError "KEY: PATH: reason" when the path is no regular file or cannot be read. An empty file
  /// is fine.
  MappedFile(const std::string& path, std::string_view key);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {first_, size_}; }

  /// Asks the system to start reading these bytes; returns at once. A refusal costs speed alone and is not
  /// told.
  void will_need(std::int64_t begin, std::int64_t count) const;

 private:
  const std::byte* first_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace dew
