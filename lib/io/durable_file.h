// Small files that are never half written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dew {

/// Writes a temporary neighbour, fsyncs it, renames it to `path` and fsyncs the directory. Throws Error with
/// the system's reason; the old file then stays.
void write_file_durably(const std::string& path, std::string_view text);

/// Makes a directory and its parents and checks that files can be made in it. Throws ConfigError (`key`: its
/// YAML path).
void make_writable_directory(const std::string& path, std::string_view key);

/// fsync of a file or directory by name. Throws Error.
void sync_path(const std::string& path);

/// Renames a file that is already durable within its directory, over an old one, and makes the new name
/// durable. Throws Error.
void publish_file(const std::string& from, const std::string& to);

/// Throws Error with the bytes asked for and the bytes there are, when the disk of `directory` or this
/// process's file size limit has less than `bytes` for one file.
void require_space(const std::string& directory, std::int64_t bytes);

}  // namespace dew
