// Which exchange an attention call over the sequence axis uses: one documented rule, a named one, or what was
// measured.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

namespace dew {

enum class SequenceExchange : std::uint8_t {
  kAllToAll,  ///< heads against positions: every rank attends whole rows with its share of the heads
  kGather,    ///< keys and values of all positions come to every rank's queries
  kBand,      ///< a window that fits in one shard: the previous neighbour's tail, by one shift
  kRing,      ///< keys and values go round, balanced blocks of queries stay
};

/// "all_to_all", "gather", "band", "ring".
std::string_view name_of(SequenceExchange exchange);
std::optional<SequenceExchange> exchange_named(std::string_view name);

/// What the rule knows of one call. Counts of heads are those of one rank, after the split over tensor.
struct SequenceCall {
  std::int64_t samples = 0, queries = 0, keys = 0;  ///< rows, and positions over all ranks of the axis
  std::int64_t heads = 0, kv_heads = 0, head_width = 0;
  bool causal = true;
  std::int64_t window = 0;
  int ranks = 1;
  // NOLINTNEXTLINE(modernize-use-nullptr): the check sees a zero in what the compiler writes
  auto operator<=>(const SequenceCall&) const = default;
  std::string str() const;  ///< "4 x 1024 positions, 8 heads (2 kv) x 64, causal, window 128, over 2 ranks"
};

/// Key/value heads after the repetition that the all-to-all needs, K' = lcm(kv heads, ranks): the fewest that
/// divide by the ranks. They divide the query heads where those divide by the ranks.
std::int64_t repeated_kv_heads(const SequenceCall& call);

/// Empty when the exchange can run the call, else why not, with the numbers.
std::string obstacle(SequenceExchange exchange, const SequenceCall& call);

struct ExchangeChoice {
  SequenceExchange exchange = SequenceExchange::kAllToAll;
  std::string reason;
};

/// How calls are decided. Plain data: `named` wins, then `measured`, then the rule.
struct SequencePolicy {
  std::optional<SequenceExchange> named;
  std::map<SequenceCall, SequenceExchange> measured;
  std::set<SequenceCall>* seen = nullptr;  ///< where a dry run notes what it met

  /// The rule. What cannot run is out. A windowed call takes the band when its tail is fewer bytes than heads
  /// are; a causal or windowed call then the all-to-all; an unmasked one the all-to-all or the gather,
  /// whichever sends fewer bytes a rank: 2 (H + K') / N against 2 K, in units of positions x head width x (N
  /// - 1) / N. Where heads do not divide, the gather. (The ring moves what a gather moves and holds two
  /// shards instead of all keys: it is taken when named or measured fastest.) Throws ConfigError with every
  /// candidate's obstacle when none can run, or when the named one cannot.
  ExchangeChoice choose(const SequenceCall& call) const;
};

}  // namespace dew
