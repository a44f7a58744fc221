#include "autograd/sequence_rule.h"

#include <array>
#include <numeric>

#include "base/check.h"
#include "base/text.h"

namespace dew {
namespace {

constexpr std::array<SequenceExchange, 4> kExchanges{SequenceExchange::kAllToAll, SequenceExchange::kGather,
                                                     SequenceExchange::kBand, SequenceExchange::kRing};

long long ll(std::int64_t value) {
  return static_cast<long long>(value);
}

double real(std::int64_t value) {
  return static_cast<double>(value);
}

/// What a rank sends in the forward, in units of positions of the call times head width.
double cost_of(SequenceExchange exchange, const SequenceCall& call) {
  const double ranks = call.ranks, share = (ranks - 1) / ranks;
  const double positions = real(call.queries);
  switch (exchange) {
    case SequenceExchange::kAllToAll:
      return 2 * share * real(call.heads + repeated_kv_heads(call)) / ranks;
    case SequenceExchange::kGather:
    case SequenceExchange::kRing:
      return 2 * share * real(call.kv_heads) * real(call.keys) / positions;
    case SequenceExchange::kBand:
      return 2 * real(call.kv_heads) * real(call.window - 1) / positions;
  }
  return 0;
}

std::string balance_obstacle(const SequenceCall& call) {
  if (!call.causal || call.queries % (2 * call.ranks) == 0) return {};
  return format("a causal call needs positions that divide by 2 x sequence: %lld by %d", ll(call.queries),
                2 * call.ranks);
}

std::string all_obstacles(const SequenceCall& call) {
  std::string text;
  for (SequenceExchange exchange : kExchanges)
    text += (text.empty() ? "" : "; ") + std::string(name_of(exchange)) + ": " + obstacle(exchange, call);
  return text;
}

}  // namespace

std::string_view name_of(SequenceExchange exchange) {
  switch (exchange) {
    case SequenceExchange::kAllToAll:
      return "all_to_all";
    case SequenceExchange::kGather:
      return "gather";
    case SequenceExchange::kBand:
      return "band";
    case SequenceExchange::kRing:
      return "ring";
  }
  return "";
}

std::optional<SequenceExchange> exchange_named(std::string_view name) {
  for (SequenceExchange exchange : kExchanges)
    if (name_of(exchange) == name) return exchange;
  return std::nullopt;
}

std::int64_t repeated_kv_heads(const SequenceCall& call) {
  return std::lcm(call.kv_heads, static_cast<std::int64_t>(call.ranks));
}

std::string SequenceCall::str() const {
  std::string text =
      format("%lld x %lld positions, %lld heads (%lld kv) x %lld, %s", ll(samples), ll(queries), ll(heads),
             ll(kv_heads), ll(head_width), causal ? "causal" : "unmasked");
  if (keys != queries) text += format(", %lld keys", ll(keys));
  if (window > 0) text += format(", window %lld", ll(window));
  return text + format(", over %d ranks", ranks);
}

std::string obstacle(SequenceExchange exchange, const SequenceCall& call) {
  switch (exchange) {
    case SequenceExchange::kAllToAll:
      if (call.heads % call.ranks == 0) return {};
      return format("%lld heads of a rank do not divide by sequence %d", ll(call.heads), call.ranks);
    case SequenceExchange::kBand: {
      if (!call.causal || call.window == 0) return "the call has no window";
      const std::int64_t shard = call.keys / call.ranks;
      if (call.keys == call.queries && call.window - 1 <= shard) return {};
      return format("a window of %lld does not fit one shard of %lld positions", ll(call.window), ll(shard));
    }
    case SequenceExchange::kGather:
    case SequenceExchange::kRing:
      break;
  }
  if (call.causal && call.keys != call.queries)
    return format("a causal call needs as many keys as queries: %lld and %lld", ll(call.keys),
                  ll(call.queries));
  return balance_obstacle(call);
}

ExchangeChoice SequencePolicy::choose(const SequenceCall& call) const {
  if (seen != nullptr) seen->insert(call);
  const auto feasible = [&call](SequenceExchange exchange) { return obstacle(exchange, call).empty(); };
  if (named) {
    const std::string reason = obstacle(*named, call);
    if (!reason.empty())
      throw ConfigError("sequence_exchange: " + std::string(name_of(*named)) + " cannot run " + call.str() +
                        ": " + reason + "; accepted: auto, measured or one that can");
    return {*named, "as named"};
  }
  const auto found = measured.find(call);
  if (found != measured.end()) return {found->second, "the fastest of a trial"};

  const bool all_to_all = feasible(SequenceExchange::kAllToAll), gather = feasible(SequenceExchange::kGather);
  const double by_heads = cost_of(SequenceExchange::kAllToAll, call),
               by_keys = cost_of(SequenceExchange::kGather, call);
  if (feasible(SequenceExchange::kBand)) {
    const double by_tail = cost_of(SequenceExchange::kBand, call);
    if (!all_to_all || by_tail < by_heads)
      return {SequenceExchange::kBand,
              format("the window fits one shard; %.3g units against %.3g by heads", by_tail, by_heads)};
  }
  if (!call.causal && all_to_all && gather && by_keys < by_heads)
    return {SequenceExchange::kGather,
            format("fewer bytes: %.3g units by keys against %.3g by heads", by_keys, by_heads)};
  if (all_to_all)
    return {SequenceExchange::kAllToAll,
            call.causal ? format("%lld heads divide by %d", ll(call.heads), call.ranks)
                        : format("fewer bytes: %.3g units by heads against %.3g by keys", by_heads, by_keys)};
  const std::string why_not = obstacle(SequenceExchange::kAllToAll, call);
  if (gather) return {SequenceExchange::kGather, why_not};
  if (feasible(SequenceExchange::kRing)) return {SequenceExchange::kRing, why_not};
  throw ConfigError("sequence_exchange: nothing can run " + call.str() + ": " + all_obstacles(call));
}

}  // namespace dew
