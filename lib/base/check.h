// Errors. A fault of the program or of a library throws Error; a fault of the user's input throws
// ConfigError, which carries every message found; a fault that all ranks throw at once is a SharedError, so
// that one of them prints.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace dew {

/// A fault while running: printed with rank and host by the rank that has it; the job ends with exit
/// status 1.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An Error that every rank throws at the same point: rank 0 alone prints it.
class SharedError : public Error {
 public:
  using Error::Error;
};

/// The command line or the run description is wrong. Thrown by every rank alike, before anything is written;
/// exit 2. Of very many messages it carries the first hundred and how many more there are.
class ConfigError : public Error {
 public:
  explicit ConfigError(std::vector<std::string> messages);
  explicit ConfigError(std::string message);
  const std::vector<std::string>& messages() const { return messages_; }

 private:
  struct Shortened {
    std::vector<std::string> messages;
  };
  explicit ConfigError(Shortened list);
  std::vector<std::string> messages_;
};

namespace detail {

template <class... Values>
std::string join_values(const Values&... values) {
  std::ostringstream out;
  ((out << ' ' << values), ...);
  return out.str();
}

[[noreturn]] void check_failed(const char* condition, const char* file, int line, const std::string& values);

}  // namespace detail
}  // namespace dew

/// Throws Error with the condition, its place and the values when the condition is false.
#define DEW_CHECK(condition, ...)                                                                           \
  do {                                                                                                      \
    if (!(condition)) [[unlikely]]                                                                          \
      ::dew::detail::check_failed(#condition, __FILE__, __LINE__, ::dew::detail::join_values(__VA_ARGS__)); \
  } while (false)
