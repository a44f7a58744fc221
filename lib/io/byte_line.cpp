#include "io/byte_line.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/text.h"

namespace dew {

std::int64_t validation_tokens(std::int64_t total, double share, std::string_view key) {
  if (!(share >= 0 && share < 1)) {
    throw ConfigError(std::string(key) + ": " + format_exact(share) + ": accepted: 0 or more, below 1");
  }
  return static_cast<std::int64_t>(std::floor(share * static_cast<double>(total)));
}

ByteLine::ByteLine(std::vector<std::span<const std::byte>> pieces, double validation)
    : pieces_(std::move(pieces)) {
  std::int64_t end = 0;
  for (const std::span<const std::byte> piece : pieces_) {
    end += static_cast<std::int64_t>(piece.size());
    ends_.push_back(end);
  }
  train_ = end - validation_tokens(end, validation, "data.validation");
}

void ByteLine::read(Split split, std::int64_t begin, std::span<std::int32_t> ids) const {
  std::int32_t* out = ids.data();
  for_pieces(split, begin, static_cast<std::int64_t>(ids.size()),
             [&](std::size_t piece, std::int64_t first, std::int64_t count) {
               const std::byte* in = pieces_[piece].data() + first;
               for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<std::int32_t>(in[i]);
               out += count;
             });
}

ByteLine::Part ByteLine::first_part(Split split, std::int64_t begin, std::int64_t count) const {
  DEW_CHECK(begin >= 0 && count >= 0 && begin + count <= tokens(split), begin, count, tokens(split));
  if (count == 0) return {};
  const std::int64_t at = begin + (split == Split::kTrain ? 0 : train_);
  const auto piece =
      static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), at) - ends_.begin());
  const std::int64_t here = std::min(count, ends_[piece] - at);
  const auto size = static_cast<std::int64_t>(pieces_[piece].size());
  return {piece, at - (ends_[piece] - size), here, count - here};
}

ByteLine::Part ByteLine::next_part(const Part& part) const {
  if (part.left == 0) return {};
  const std::size_t piece = part.piece + 1;
  const std::int64_t here = std::min(part.left, static_cast<std::int64_t>(pieces_[piece].size()));
  return {piece, 0, here, part.left - here};
}

}  // namespace dew
