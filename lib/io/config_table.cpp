#include "io/config_table.h"

namespace dew {
namespace {

/// A bar inside a cell would end it.
std::string cell(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string code(const std::string& text) {
  return text.empty() ? "" : "`" + cell(text) + "`";
}

}  // namespace

std::string markdown_table(std::span<const KeyRow> rows) {
  std::string out = "| key | type | unit | default | meaning |\n|---|---|---|---|---|\n";
  for (const KeyRow& row : rows) {
    out += "| " + code(row.path) + " | " + cell(row.type) + " | " + cell(row.unit) + " | " +
           code(row.default_text) + " | " + cell(row.meaning) + " |\n";
  }
  return out;
}

}  // namespace dew
