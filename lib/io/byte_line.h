// Pieces of bytes read as one long line of ids 0 to 255, whose last share validates. The pieces belong to the
// caller and must stay where they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "io/token_source.h"

namespace dew {

inline constexpr std::int64_t kByteVocabulary = 256;

/// Tokens of `total` that validate: floor(share * total). Throws ConfigError (path `key`) when the share is
/// not from 0 to below 1.
std::int64_t validation_tokens(std::int64_t total, double share, std::string_view key);

class ByteLine {
 public:
  ByteLine(std::vector<std::span<const std::byte>> pieces, double validation);

  std::int64_t total() const { return ends_.empty() ? 0 : ends_.back(); }
  std::int64_t tokens(Split split) const { return split == Split::kTrain ? train_ : total() - train_; }
  /// ids[i] = the byte at begin + i of the split. Throws Error beyond the split.
  void read(Split split, std::int64_t begin, std::span<std::int32_t> ids) const;

  /// Calls f(piece, first byte in it, count) for each piece that holds some of the ids [begin, begin +
  /// count). Throws Error beyond the split.
  template <class F>
  void for_pieces(Split split, std::int64_t begin, std::int64_t count, F&& f) const {
    for (Part part = first_part(split, begin, count); part.count > 0; part = next_part(part)) {
      f(part.piece, part.begin, part.count);
    }
  }

 private:
  struct Part {
    std::size_t piece = 0;
    std::int64_t begin = 0, count = 0;  ///< within the piece
    std::int64_t left = 0;              ///< in the pieces after it
  };
  Part first_part(Split split, std::int64_t begin, std::int64_t count) const;
  Part next_part(const Part& part) const;

  std::vector<std::span<const std::byte>> pieces_;
  std::vector<std::int64_t> ends_;  ///< where each piece ends in the line
  std::int64_t train_ = 0;
};

}  // namespace dew
