#include "train/free_memory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

namespace dew {
namespace {

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

/// The number behind `key` in a file of "key number" lines; 0 without it.
std::int64_t value_of(const std::filesystem::path& file, const std::string& key) {
  std::ifstream in(file);
  std::string word;
  while (in >> word) {
    std::int64_t value = 0;
    if (word == key && in >> value) return value;
  }
  return 0;
}

/// What the limit of one control group leaves; unlimited without a limit ("max") or without the files.
std::int64_t left_in(const std::filesystem::path& group) {
  std::int64_t limit = 0, used = 0;
  if (!(std::ifstream(group / "memory.max") >> limit)) return kUnlimited;
  if (!(std::ifstream(group / "memory.current") >> used)) return kUnlimited;
  const std::int64_t droppable = value_of(group / "memory.stat", "inactive_file");
  return std::max<std::int64_t>(0, limit - used + droppable);
}

}  // namespace

std::int64_t free_memory() {
  constexpr std::int64_t kKib = 1024;
  std::int64_t least = kUnlimited;
  if (const std::int64_t available = value_of("/proc/meminfo", "MemAvailable:"); available > 0)
    least = available * kKib;
  std::string line;
  std::getline(std::ifstream("/proc/self/cgroup"), line);  // version 2: one line, "0::/path"
  const std::filesystem::path root = "/sys/fs/cgroup";
  std::filesystem::path group = root;
  if (line.starts_with("0::/")) group /= line.substr(4);
  for (; group != root && group.has_relative_path(); group = group.parent_path())
    least = std::min(least, left_in(group));
  return std::min(least, left_in(root));
}

}  // namespace dew
