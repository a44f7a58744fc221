// The rules of the house as pure functions from source text to violations, so that each can be shown to find
// a planted one. A path is relative to the project's folder: "lib/tensor/copy.cpp".
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dew::test {

/// Text of a file by its path.
using SourceTree = std::map<std::string, std::string>;
/// One line each: "PATH:LINE: what is wrong". Empty when the rule holds.
using Violations = std::vector<std::string>;

/// An #include of a file.
struct Include {
  std::string target;
  bool quoted = false;
  int line = 0;
};
std::vector<Include> includes_of(std::string_view text);

/// The text with comments, strings and character literals blanked; lines keep their numbers.
std::string code_of(std::string_view text);

/// A file of lib may include its own folder and folders of lower rank, by "folder/file.h"; nothing but apps
/// and tests includes apps.
Violations layer_violations(const SourceTree& tree);

/// Headers from outside the project appear only where the table allows them.
Violations third_party_violations(const SourceTree& tree);

/// No file includes itself, over any number of others.
Violations cycle_violations(const SourceTree& tree);

/// `#pragma once` is the first line of code of every header.
Violations guard_violations(const SourceTree& tree);

/// No file has more than `limit` lines.
Violations length_violations(const SourceTree& tree, int limit);

/// Ops capture by value and by name: no [&] and no [=] under lib/autograd.
Violations capture_violations(const SourceTree& tree);

/// Nothing in lib catches, except on a line that ends in "// boundary: REASON": a library that reports by its
/// own exceptions, a callback from C, an agreement of ranks.
Violations catch_violations(const SourceTree& tree);

/// No notes to oneself.
Violations note_violations(const SourceTree& tree);

/// Every folder of lib has a README.md of at most `limit` lines.
Violations readme_violations(const SourceTree& tree, int limit);

/// Every folder of lib has tests, and tests has no folder that lib lacks, but `support` and `system`.
Violations mirror_violations(const SourceTree& tree);

}  // namespace dew::test
