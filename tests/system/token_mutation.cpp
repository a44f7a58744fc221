#include "system/token_mutation.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "io/temp_folder.h"

namespace dew::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const std::map<std::string, std::size_t>& widths() {
  static const std::map<std::string, std::size_t> kAll{{"uint8", 1}, {"uint16", 2}, {"uint32", 4}};
  return kAll;
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::string stored(std::uint64_t id, std::size_t width) {
  std::string bytes;
  for (std::size_t i = 0; i < width; ++i) bytes += static_cast<char>(id >> (8 * i) & 0xFF);
  return bytes;
}

bool is_file(const std::string& path) {
  std::error_code none;
  return fs::is_regular_file(path, none);
}

std::string meta_value(Draws& draws) {
  constexpr std::array kValues{"-1",
                               "0",
                               "1",
                               "600",
                               "601",
                               "1200",
                               "2147483648",
                               "1e3",
                               "600.0",
                               "1e400",
                               "null",
                               "true",
                               "[]",
                               "{}",
                               "\"\"",
                               "\"uint8\"",
                               "\"600\"",
                               "\"uint16\"",
                               "\"uint32\"",
                               "\"int8\"",
                               "[600]",
                               "{\"a\": 1}",
                               "9223372036854775807",
                               "18446744073709551615",
                               "99999999999999999999",
                               "NaN"};
  if (draws.once_in(20)) {
    const std::size_t depth = std::size_t{1} << (4 + draws.below(13));
    return std::string(depth, '[') + std::string(depth, ']');
  }
  return draws.one_of(kValues);
}

std::string damage_meta(const std::string& path, Draws& draws) {
  if (!is_file(path)) return "meta.json is no file";
  std::string text = read_file(path);
  constexpr std::array kKeys{"tokenizer", "vocab_size", "dtype", "train_tokens", "val_tokens", "eos_id"};
  const std::string key = draws.one_of(kKeys), quoted = '"' + key + "\": ";
  const std::size_t at = text.find(quoted);
  switch (at == std::string::npos ? 0 : draws.below(4)) {
    case 0:
      text = mutated(text, {}, draws);
      break;
    case 1: {
      const std::size_t begin = at + quoted.size(), end = text.find_first_of(",}", begin);
      text.replace(begin, end - begin, meta_value(draws));
      break;
    }
    case 2:
      text.insert(at, quoted + meta_value(draws) + ", ");
      break;
    default:
      text.insert(at + 1, "x");
  }
  write(path, text);
  return "meta.json is now\n" + printable(text) + '\n';
}

std::string replace_file(const std::string& path, Draws& draws) {
  std::error_code none;
  fs::remove_all(path, none);
  constexpr std::array kTargets{"nowhere", "train.bin", "val.bin", ".", "/dev/null", "/dev/zero"};
  const std::string target = draws.one_of(kTargets);
  switch (draws.below(4)) {
    case 0:
      return "is missing";
    case 1:
      fs::create_directory(path);
      return "is a folder";
    case 2:
      ::mkfifo(path.c_str(), 0600);
      return "is a pipe";
    default:
      fs::create_symlink(draws.once_in(6) ? path : target, path);
      return "is a link to " + fs::read_symlink(path).string();
  }
}

std::string damage_bytes(const std::string& path, Draws& draws) {
  if (!is_file(path) || fs::is_symlink(path)) return "is no file";
  std::string bytes = read_file(path);
  const std::size_t size = bytes.size(), at = draws.below(size), length = 1 + draws.below(8);
  std::string done;
  switch (draws.below(5)) {
    case 0:
      bytes.resize(draws.once_in(4) ? 0 : at);
      done = "has " + std::to_string(bytes.size()) + " bytes instead of " + std::to_string(size);
      break;
    case 1:
      bytes += std::string(length, '\1');
      done = "has " + std::to_string(length) + " bytes more";
      break;
    case 2:
      bytes = std::string(size, '\0');
      done = "is all zero";
      break;
    default:
      for (std::size_t i = at; i < std::min(size, at + length); ++i)
        bytes[i] = static_cast<char>(draws.once_in(2) ? 0xFF : draws.below(256));
      done = "has other bytes from " + std::to_string(at) + " on";
  }
  write(path, bytes);
  return done;
}

/// A file by its name; "" where it is no regular file.
bool holds(const std::string& directory, const std::string& name, std::string& bytes) {
  if (!is_file(directory + '/' + name)) return false;
  bytes = read_file(directory + '/' + name);
  return true;
}

bool is_count(const Json& meta, const char* key, std::int64_t low, std::int64_t high) {
  if (!meta.contains(key) || !meta[key].is_number_integer()) return false;
  if (meta[key].is_number_unsigned() && meta[key].get<std::uint64_t>() > static_cast<std::uint64_t>(high))
    return false;
  return meta[key].get<std::int64_t>() >= low && meta[key].get<std::int64_t>() <= high;
}

/// A key that comes twice says two things, and the parser keeps one of them.
bool has_twice(const std::string& text, const std::string& key) {
  const std::string quoted = '"' + key + "\":";
  const std::size_t first = text.find(quoted);
  return first != std::string::npos && text.find(quoted, first + 1) != std::string::npos;
}

bool is_sound_meta(const Json& meta) {
  if (!meta.is_object() || !meta.contains("tokenizer") || !meta["tokenizer"].is_string()) return false;
  constexpr std::int64_t kMost = 1 << 30;
  if (!is_count(meta, "vocab_size", 1, kMost) || !is_count(meta, "train_tokens", 0, kMost) ||
      !is_count(meta, "val_tokens", 0, kMost))
    return false;
  if (!meta.contains("eos_id")) return false;
  if (!meta["eos_id"].is_null() && !is_count(meta, "eos_id", 0, meta["vocab_size"].get<std::int64_t>() - 1))
    return false;
  return meta.contains("dtype") && meta["dtype"].is_string() && widths().contains(meta["dtype"]);
}

bool is_sound_split(const std::string& directory, const std::string& name, const Json& meta,
                    std::size_t tokens) {
  std::string bytes, mask;
  const std::size_t width = widths().at(meta["dtype"]);
  if (!holds(directory, name + ".bin", bytes) || bytes.size() != tokens * width) return false;
  for (std::size_t i = 0; i < tokens; ++i) {
    std::uint64_t id = 0;
    for (std::size_t b = width; b-- > 0;) id = id << 8 | static_cast<unsigned char>(bytes[i * width + b]);
    if (id >= meta["vocab_size"].get<std::uint64_t>()) return false;
  }
  if (fs::symlink_status(directory + '/' + name + ".mask").type() == fs::file_type::not_found) return true;
  if (!holds(directory, name + ".mask", mask) || mask.size() != tokens) return false;
  return std::all_of(mask.begin(), mask.end(), [](char c) { return c == 0 || c == 1; });
}

}  // namespace

void write_valid_tokens(const std::string& directory, Draws& draws) {
  fs::remove_all(directory);
  fs::create_directory(directory);
  constexpr std::array kTypes{"uint8", "uint16", "uint32"};
  const std::string type = draws.one_of(kTypes);
  const std::size_t width = widths().at(type);
  const std::uint64_t vocabulary = 1 + draws.below(width == 1 ? 256 : 300);
  Json meta{{"tokenizer", "drawn"}, {"vocab_size", vocabulary}, {"dtype", type}, {"eos_id", nullptr}};
  for (const char* name : {"train", "val"}) {
    const std::size_t tokens = std::string(name) == "train" ? 600 : draws.once_in(4) ? 0 : 100;
    std::string bytes, mask;
    for (std::size_t i = 0; i < tokens; ++i) {
      bytes += stored(draws.below(vocabulary), width);
      mask += static_cast<char>(draws.once_in(3) ? 0 : 1);
    }
    meta[std::string(name) + "_tokens"] = tokens;
    write(directory + '/' + name + ".bin", bytes);
    if (draws.once_in(2)) write(directory + '/' + name + ".mask", mask);
  }
  std::string text = meta.dump();
  for (std::size_t at = text.find("\":"); at != std::string::npos; at = text.find("\":", at + 1))
    text.insert(at + 2, " ");
  write(directory + "/meta.json", text);
}

std::string damage_tokens(const std::string& directory, Draws& draws) {
  std::string done;
  const std::size_t faults = 1 + draws.below(2);
  for (std::size_t i = 0; i < faults; ++i) {
    constexpr std::array kFiles{"train.bin", "val.bin", "train.bin", "val.bin", "train.mask", "val.mask"};
    const std::string name = draws.one_of(kFiles), path = directory + '/' + name;
    const std::size_t kind = draws.below(7);
    if (kind < 2)
      done += damage_meta(directory + "/meta.json", draws) + '\n';
    else if (kind == 2)
      done += name + ' ' + replace_file(path, draws) + '\n';
    else if (kind == 3 && draws.once_in(3))
      done += "meta.json " + replace_file(directory + "/meta.json", draws) + '\n';
    else
      done += name + ' ' + damage_bytes(path, draws) + '\n';
  }
  return done;
}

bool is_sound(const std::string& directory, std::int64_t seq_len) {
  std::string text;
  if (!holds(directory, "meta.json", text)) return false;
  const Json meta = Json::parse(text, nullptr, false);
  if (!is_sound_meta(meta)) return false;
  for (const auto& item : meta.items())
    if (has_twice(text, item.key())) return false;
  const std::int64_t train = meta["train_tokens"], validation = meta["val_tokens"];
  if (train < seq_len + 1 || (validation > 0 && validation < seq_len + 1)) return false;
  return is_sound_split(directory, "train", meta, static_cast<std::size_t>(train)) &&
         is_sound_split(directory, "val", meta, static_cast<std::size_t>(validation));
}

}  // namespace dew::testing
