// Short English sentences from a small grammar: a corpus that needs no file and that a tiny model can learn.
#pragma once

#include <cstdint>
#include <string>

namespace dew {

/// `count` sentences, one a line ("the old farmer carries a basket to the market.\n"). Sentence i is a pure
/// function of (seed, i), so a longer text begins with the shorter one. Verbs agree with their subjects, "a"
/// and "an" with the next word, objects with their verbs.
std::string write_sentences(std::int64_t count, std::uint64_t seed);

}  // namespace dew
