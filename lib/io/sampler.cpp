#include "io/sampler.h"

#include <array>

#include "base/check.h"
#include "base/philox.h"

namespace dew {
namespace {

// Four rounds mix large halves. Halves of one or two bits need ten before orders of five windows come equally
// often.
constexpr int kRounds = 10;
constexpr int kMaxHalfBits = 31;
using RoundKeys = std::array<std::uint64_t, kRounds>;

RoundKeys round_keys(std::uint64_t key, std::uint64_t epoch) {
  RoundKeys keys{};
  for (std::size_t i = 0; i < keys.size(); i += 2) {
    const PhiloxBlock block = philox(key, epoch, i);
    keys[i] = block[0] | std::uint64_t{block[1]} << 32;
    keys[i + 1] = block[2] | std::uint64_t{block[3]} << 32;
  }
  return keys;
}

/// A permutation of the integers of 2 * half_bits bits, whatever the round function is.
std::uint64_t feistel(std::uint64_t value, const RoundKeys& keys, int half_bits) {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
  std::uint64_t left = value >> half_bits, right = value & mask;
  for (const std::uint64_t key : keys) {
    const std::uint64_t mixed = left ^ (mix64(right ^ key) & mask);
    left = right;
    right = mixed;
  }
  return left << half_bits | right;
}

}  // namespace

Sampler::Sampler(std::int64_t windows, std::uint64_t seed)
    : windows_(windows), key_(stream_key(seed, "epoch order")) {
  DEW_CHECK(windows >= 1 && windows <= std::int64_t{1} << (2 * kMaxHalfBits), windows);
  while (std::int64_t{1} << (2 * half_bits_) < windows) ++half_bits_;
}

Sampler::Place Sampler::at(std::int64_t global_row) const {
  DEW_CHECK(global_row >= 0, global_row);
  const std::int64_t epoch = global_row / windows_;
  const RoundKeys keys = round_keys(key_, static_cast<std::uint64_t>(epoch));
  // The domain is less than four times the windows. Walking along the permutation's cycle until it is inside
  // again is a permutation of the windows, and ends because the cycle comes back to its start.
  auto window = static_cast<std::uint64_t>(global_row % windows_);
  do {
    window = feistel(window, keys, half_bits_);
  } while (window >= static_cast<std::uint64_t>(windows_));
  return {epoch, static_cast<std::int64_t>(window)};
}

}  // namespace dew
