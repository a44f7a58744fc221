#include "support/source_rules.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <regex>
#include <set>

namespace dew::test {
namespace {

using SourceFile = SourceTree::value_type;  // not a structured binding: clang 14 cannot capture one

struct FolderRank {
  std::string_view folder;
  int rank;
};
constexpr std::array<FolderRank, 8> kRanks{{{"base", 0},
                                            {"tensor", 1},
                                            {"kernels", 2},
                                            {"comm", 3},
                                            {"autograd", 4},
                                            {"io", 4},
                                            {"model", 5},
                                            {"train", 6}}};

// Where a header from outside may be included: paths that begin with `place` and end with `ending`.
struct ThirdParty {
  std::string_view header;  // a name, or the beginning of one
  std::string_view place;
  std::string_view ending;
};
constexpr std::array<ThirdParty, 20> kThirdParty{{{"mpi.h", "lib/comm/", ".cpp"},
                                                  {"dnnl", "lib/kernels/cpu/", ""},
                                                  {"oneapi/", "lib/kernels/cpu/", ""},
                                                  {"omp.h", "lib/kernels/cpu/", ""},
                                                  {"cblas.h", "lib/kernels/cpu/", ""},
                                                  {"openblas", "lib/kernels/cpu/", ""},
                                                  {"immintrin.h", "lib/kernels/cpu/", ""},
                                                  {"cpuid.h", "lib/kernels/cpu/", ""},
                                                  {"yaml-cpp/", "lib/io/", ".cpp"},
                                                  {"hdf5.h", "lib/io/", ".cpp"},
                                                  {"H5", "lib/io/", ".cpp"},
                                                  {"nlohmann/", "lib/io/", ".cpp"},
                                                  {"boost/program_options", "apps/", ""},
                                                  {"gtest/", "tests/", ""},
                                                  {"mpi.h", "tests/", ".cpp"},
                                                  {"omp.h", "tests/kernels/", ""},
                                                  {"hdf5.h", "tests/", ".cpp"},
                                                  {"nlohmann/", "tests/", ""},
                                                  // a benchmark measures the libraries beside our use of them
                                                  {"oneapi/", "benchmarks/", ".cpp"},
                                                  {"cblas.h", "benchmarks/", ".cpp"}}};

// Headers of the C library and of POSIX that have no <c...> form; C++ headers have neither dot nor slash.
const std::set<std::string_view>& system_headers() {
  static const std::set<std::string_view> kHeaders{
      "unistd.h",      "fcntl.h",     "signal.h",       "sched.h",       "dirent.h",
      "poll.h",        "pthread.h",   "sys/mman.h",     "sys/stat.h",    "spawn.h",
      "ftw.h",         "dlfcn.h",     "sys/resource.h", "sys/types.h",   "sys/wait.h",
      "sys/sysinfo.h", "sys/ioctl.h", "sys/file.h",     "stdlib.h",      "malloc.h",
      "sys/time.h",    "sys/prctl.h", "sys/syscall.h",  "sys/statvfs.h", "sys/utsname.h"};
  return kHeaders;
}

bool is_header(std::string_view path) {
  return path.ends_with(".h");
}
bool is_source(std::string_view path) {
  return is_header(path) || path.ends_with(".cpp");
}

std::optional<int> rank_of(std::string_view folder) {
  for (const FolderRank& known : kRanks)
    if (known.folder == folder) return known.rank;
  return std::nullopt;
}

/// "tensor" of "lib/tensor/copy.cpp", "kernels" of "kernels/gemm.h" with an empty root.
std::string folder_of(std::string_view path, std::string_view root) {
  path.remove_prefix(root.size());
  return std::string(path.substr(0, std::min(path.find('/'), path.size())));
}

int lines_of(std::string_view text) {
  const auto ends = std::count(text.begin(), text.end(), '\n');
  return static_cast<int>(ends) + (!text.empty() && text.back() != '\n' ? 1 : 0);
}

std::string at(const std::string& path, int line, const std::string& what) {
  return path + ':' + std::to_string(line) + ": " + what;
}

void for_each_line(std::string_view text, const std::function<void(std::string_view, int)>& visit) {
  int number = 1;
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    visit(text.substr(begin, end - begin), number);
    begin = end + 1;
  }
}

/// The file of the tree that an include means, or "" when it means none of them.
std::string resolved(const SourceTree& tree, const std::string& from, const Include& include) {
  if (!include.quoted) return "";
  const std::string beside = from.substr(0, from.rfind('/') + 1) + include.target;
  for (const std::string& path : {"lib/" + include.target, "tests/" + include.target, beside, include.target})
    if (tree.contains(path)) return path;
  return "";
}

/// Lines of code (comments and strings blanked) of files with the prefix that match the pattern.
Violations matching(const SourceTree& tree, std::string_view prefix, const std::regex& pattern,
                    const std::string& what, std::string_view allowed_mark = {}) {
  Violations found;
  for (const SourceFile& file : tree) {
    const std::string &path = file.first, &text = file.second;
    if (!path.starts_with(prefix) || !is_source(path)) continue;
    std::vector<std::string_view> raw;
    for_each_line(text, [&](std::string_view line, int) { raw.push_back(line); });
    for_each_line(code_of(text), [&](std::string_view line, int number) {
      if (!std::regex_search(line.begin(), line.end(), pattern)) return;
      const std::string_view whole = raw[static_cast<std::size_t>(number) - 1];
      if (allowed_mark.empty() || whole.find(allowed_mark) == whole.npos)
        found.push_back(at(path, number, what));
    });
  }
  return found;
}

}  // namespace

std::vector<Include> includes_of(std::string_view text) {
  static const std::regex kPattern(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])");
  std::vector<Include> includes;
  for_each_line(text, [&](std::string_view line, int number) {
    std::match_results<std::string_view::const_iterator> match;
    if (std::regex_search(line.begin(), line.end(), match, kPattern))
      includes.push_back({match[2].str(), *match[1].first == '"', number});
  });
  return includes;
}

std::string code_of(std::string_view text) {
  std::string code(text);
  enum class State { kCode, kLineComment, kBlockComment, kString, kChar, kRaw } state = State::kCode;
  std::string raw_end;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const char c = text[i], next = i + 1 < text.size() ? text[i + 1] : '\0',
               last = i > 0 ? text[i - 1] : '\0';
    const bool was_code = state == State::kCode;
    if (was_code) {
      if (c == '/' && next == '/') state = State::kLineComment;
      if (c == '/' && next == '*') state = State::kBlockComment;
      if (c == '"' && last == 'R') {
        state = State::kRaw;
        raw_end = ")" + std::string(text.substr(i + 1, text.find('(', i) - i - 1)) + "\"";
      } else if (c == '"') {
        state = State::kString;
      }
      if (c == '\'' && !std::isalnum(static_cast<unsigned char>(last)))
        state = State::kChar;  // 1'000 is a number
      if (state == State::kCode) continue;
    } else if (state == State::kLineComment && c == '\n') {
      state = State::kCode;
    } else if (state == State::kBlockComment && c == '/' && last == '*') {
      state = State::kCode;
    } else if (state == State::kRaw && text.substr(i).starts_with(raw_end)) {
      for (std::size_t end = i + raw_end.size(); i + 1 < end; ++i) code[i] = ' ';
      state = State::kCode;
    } else if ((state == State::kString || state == State::kChar) && c == '\\') {
      code[i++] = ' ';
    } else if ((state == State::kString && c == '"') || (state == State::kChar && c == '\'')) {
      state = State::kCode;
    }
    if (i < code.size() && code[i] != '\n') code[i] = ' ';
  }
  return code;
}

Violations layer_violations(const SourceTree& tree) {
  Violations found;
  for (const auto& [path, text] : tree) {
    if (!path.starts_with("lib/") || !is_source(path)) continue;
    const std::string folder = folder_of(path, "lib/");
    const std::optional<int> rank = rank_of(folder);
    if (!rank) found.push_back(at(path, 1, "the folder has no rank"));
    for (const Include& include : includes_of(text)) {
      if (!include.quoted || !rank) continue;
      const std::string other = folder_of(include.target, "");
      const std::optional<int> other_rank = rank_of(other);
      if (!other_rank || !tree.contains("lib/" + include.target))
        found.push_back(at(path, include.line, "\"" + include.target + "\" is no file of lib"));
      else if (other != folder && *other_rank >= *rank)
        found.push_back(at(path, include.line, folder + " may not include " + other));
    }
  }
  return found;
}

Violations third_party_violations(const SourceTree& tree) {
  Violations found;
  for (const SourceFile& file : tree) {
    const std::string& path = file.first;
    if (!is_source(path)) continue;
    for (const Include& include : includes_of(file.second)) {
      if (!resolved(tree, path, include).empty()) continue;
      const std::string& header = include.target;
      const bool standard = header.find_first_of("./") == header.npos || system_headers().contains(header);
      if (standard && !include.quoted) continue;
      const bool allowed = std::any_of(kThirdParty.begin(), kThirdParty.end(), [&](const ThirdParty& rule) {
        return header.starts_with(rule.header) && path.starts_with(rule.place) && path.ends_with(rule.ending);
      });
      if (!allowed) found.push_back(at(path, include.line, "may not include " + header));
    }
  }
  return found;
}

Violations cycle_violations(const SourceTree& tree) {
  Violations found;
  std::set<std::string> done;
  std::vector<std::string> open;
  const std::function<void(const std::string&)> visit = [&](const std::string& path) {
    const auto again = std::find(open.begin(), open.end(), path);
    if (again != open.end()) {
      std::string ring;
      for (auto file = again; file != open.end(); ++file) ring += *file + " -> ";
      found.push_back(ring + path);
      return;
    }
    if (done.contains(path)) return;
    open.push_back(path);
    for (const Include& include : includes_of(tree.at(path)))
      if (const std::string target = resolved(tree, path, include); !target.empty()) visit(target);
    open.pop_back();
    done.insert(path);
  };
  for (const auto& [path, text] : tree)
    if (is_source(path)) visit(path);
  return found;
}

Violations guard_violations(const SourceTree& tree) {
  Violations found;
  for (const auto& [path, text] : tree) {
    if (!is_header(path)) continue;
    const std::string code = code_of(text);
    const std::size_t first = std::min(code.find_first_not_of(" \t\r\n"), code.size());
    if (!std::string_view(code).substr(first).starts_with("#pragma once"))
      found.push_back(at(path, 1, "#pragma once is not the first line of code"));
  }
  return found;
}

Violations length_violations(const SourceTree& tree, int limit) {
  Violations found;
  for (const auto& [path, text] : tree)
    if (const int lines = lines_of(text); is_source(path) && lines > limit)
      found.push_back(at(path, lines, "longer than " + std::to_string(limit) + " lines"));
  return found;
}

Violations capture_violations(const SourceTree& tree) {
  return matching(tree, "lib/autograd/", std::regex(R"(\[\s*[&=]\s*[,\]])"), "captures everything in sight");
}

Violations catch_violations(const SourceTree& tree) {
  return matching(tree, "lib/", std::regex(R"(\bcatch\s*\()"), "catches", "// boundary: ");
}

Violations note_violations(const SourceTree& tree) {
  static const std::regex kPattern(R"(\b(TO[D]O|FIX[M]E|XX[X]|HA[C]K)\b)");
  Violations found;
  for (const SourceFile& file : tree)
    for_each_line(file.second, [&](std::string_view line, int number) {
      if (std::regex_search(line.begin(), line.end(), kPattern))
        found.push_back(at(file.first, number, "a note to oneself"));
    });
  return found;
}

Violations readme_violations(const SourceTree& tree, int limit) {
  Violations found;
  for (const FolderRank& known : kRanks) {
    const std::string path = "lib/" + std::string(known.folder) + "/README.md";
    const auto file = tree.find(path);
    if (file == tree.end())
      found.push_back(at(path, 0, "missing"));
    else if (lines_of(file->second) > limit)
      found.push_back(at(path, lines_of(file->second), "longer than " + std::to_string(limit) + " lines"));
  }
  return found;
}

Violations mirror_violations(const SourceTree& tree) {
  Violations found;
  std::set<std::string> tested;
  for (const auto& [path, text] : tree) {
    if (!path.starts_with("tests/") || path.find('/', 6) == path.npos) continue;
    const std::string folder = folder_of(path, "tests/");
    if (path.ends_with("_test.cpp")) tested.insert(folder);
    if (!rank_of(folder) && folder != "support" && folder != "system")
      found.push_back(at(path, 1, "no folder of lib is called " + folder));
  }
  for (const FolderRank& known : kRanks)
    if (!tested.contains(std::string(known.folder)))
      found.push_back("tests/" + std::string(known.folder) + ": no test");
  return found;
}

}  // namespace dew::test
