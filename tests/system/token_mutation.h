// Seeded damage to a token directory, and what a reader may then still accept.
#pragma once

#include <string>

#include "system/text_mutation.h"

namespace dew::testing {

/// A valid directory of some hundred ids of a drawn type and vocabulary, perhaps with loss masks.
void write_valid_tokens(const std::string& directory, Draws& draws);

/// One or two faults: files cut, emptied, longer, missing, or folders, pipes and links in their place; ids
/// beyond the vocabulary; other masks; meta.json as a text, or with another value under one key. Returns what
/// was done, in words.
std::string damage_tokens(const std::string& directory, Draws& draws);

/// Whether the directory is what its meta.json says, by reading all of it, and holds a row of `seq_len`.
bool is_sound(const std::string& directory, std::int64_t seq_len);

}  // namespace dew::testing
