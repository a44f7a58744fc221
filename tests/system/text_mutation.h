// Seeded damage to a text that people or programs write by hand: a run description, a JSON file.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dew::testing {

/// Draws of one seed, the same on every rank and machine.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}
  /// 0 to n - 1; 0 where n is 0.
  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random_() % n); }
  bool once_in(std::size_t n) { return below(n) == 0; }
  template <class List>
  const auto& one_of(const List& list) {
    return *(std::begin(list) + static_cast<std::ptrdiff_t>(below(std::size(list))));
  }

 private:
  std::mt19937_64 random_;
};

/// A key that a text may give: its path ("data.batch") and, in words, its type ("integer, 1 or more").
struct KnownKey {
  std::string path, type;
};

/// One to three faults: bytes, lines, values, keys, structure, or an early end; or, half of the time, one to
/// three keys with values that fit their types, from the smallest to the largest.
std::string mutated(std::string text, std::span<const KnownKey> keys, Draws& draws);

/// A text on lines of printable characters, for a failure's message; a long one is shortened.
std::string printable(std::string_view text);

}  // namespace dew::testing
