// The table of keys that a reader of the README sees.
#pragma once

#include <span>
#include <string>

#include "io/config.h"

namespace dew {

/// A Markdown table, one line a key: path, type, unit, default, meaning.
std::string markdown_table(std::span<const KeyRow> rows);

}  // namespace dew
