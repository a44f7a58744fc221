// Which exchange a call over the sequence axis takes.
#include "autograd/sequence_rule.h"

#include <gtest/gtest.h>

#include "base/check.h"

namespace dew {
namespace {

SequenceCall call_of(std::int64_t positions, std::int64_t heads, std::int64_t kv_heads, int ranks,
                     bool causal, std::int64_t window = 0) {
  return {2, positions, positions, heads, kv_heads, 16, causal, window, ranks};
}

SequenceExchange chosen(const SequenceCall& call) {
  return SequencePolicy{}.choose(call).exchange;
}

TEST(Obstacle, SaysWhichNumbersDoNotFit) {
  const auto all_to_all = [](const SequenceCall& call) {
    return obstacle(SequenceExchange::kAllToAll, call);
  };
  EXPECT_EQ(all_to_all(call_of(16, 6, 3, 2, true)), "");
  EXPECT_EQ(all_to_all(call_of(16, 6, 3, 4, true)), "6 heads of a rank do not divide by sequence 4");
  for (SequenceExchange exchange : {SequenceExchange::kGather, SequenceExchange::kRing}) {
    EXPECT_EQ(obstacle(exchange, call_of(16, 3, 1, 4, true)), "");
    EXPECT_EQ(obstacle(exchange, call_of(12, 3, 1, 4, true)),
              "a causal call needs positions that divide by 2 x sequence: 12 by 8");
    EXPECT_EQ(obstacle(exchange, call_of(12, 3, 1, 4, false)), "");
  }
  const auto band = [](std::int64_t window) {
    return obstacle(SequenceExchange::kBand, call_of(16, 4, 4, 4, true, window));
  };
  EXPECT_EQ(band(0), "the call has no window");
  EXPECT_EQ(band(5), "");
  EXPECT_EQ(band(6), "a window of 6 does not fit one shard of 4 positions");
}

TEST(RepeatedKvHeads, AreTheFewestThatDivide) {
  EXPECT_EQ(repeated_kv_heads(call_of(16, 12, 4, 2, true)), 4);
  EXPECT_EQ(repeated_kv_heads(call_of(16, 12, 4, 8, true)), 8);
  EXPECT_EQ(repeated_kv_heads(call_of(16, 6, 3, 2, true)), 6);
  EXPECT_EQ(repeated_kv_heads(call_of(16, 6, 1, 3, true)), 3);
}

TEST(Rule, PrefersHeadsForCausalCalls) {
  EXPECT_EQ(chosen(call_of(1024, 8, 8, 2, true)), SequenceExchange::kAllToAll);
  EXPECT_EQ(chosen(call_of(1024, 8, 1, 2, true)), SequenceExchange::kAllToAll)
      << "though the gather is fewer bytes";
  EXPECT_EQ(chosen(call_of(1024, 3, 1, 2, true)), SequenceExchange::kGather) << "heads do not divide";
}

TEST(Rule, TakesTheFewerBytesForUnmaskedCalls) {
  // 2 (8 + 8) / 2 = 16 by heads against 2 x 8 = 16 by keys, then 2 (8 + 2) / 2 = 10 against 2 x 1 = 2.
  EXPECT_EQ(chosen(call_of(1024, 8, 8, 2, false)), SequenceExchange::kAllToAll);
  EXPECT_EQ(chosen(call_of(1024, 8, 1, 2, false)), SequenceExchange::kGather);
  EXPECT_EQ(chosen(call_of(1024, 8, 8, 4, false)), SequenceExchange::kAllToAll) << "8 against 16";
  EXPECT_EQ(chosen(call_of(1023, 3, 3, 2, false)), SequenceExchange::kGather) << "heads do not divide";
}

TEST(Rule, TakesTheBandWhenItsTailIsFewerBytes) {
  EXPECT_EQ(chosen(call_of(1024, 8, 8, 2, true, 64)), SequenceExchange::kBand);
  // A tail of 511 of 1024 positions: 2 x 8 x 511 / 1024 = 8.0 units; by heads (8 + 8) / 2 = 8.
  EXPECT_EQ(chosen(call_of(1024, 8, 8, 2, true, 513)), SequenceExchange::kAllToAll);
  EXPECT_EQ(chosen(call_of(1024, 3, 3, 2, true, 513)), SequenceExchange::kBand) << "heads do not divide";
  EXPECT_EQ(chosen(call_of(1024, 8, 8, 2, true, 600)), SequenceExchange::kAllToAll) << "does not fit a shard";
}

TEST(Policy, NamesMeasuresAndNotes) {
  const SequenceCall call = call_of(1024, 8, 8, 2, true);
  std::set<SequenceCall> seen;
  SequencePolicy policy;
  policy.seen = &seen;
  policy.measured[call] = SequenceExchange::kRing;
  EXPECT_EQ(policy.choose(call).exchange, SequenceExchange::kRing);
  policy.named = SequenceExchange::kGather;
  EXPECT_EQ(policy.choose(call).exchange, SequenceExchange::kGather);
  EXPECT_EQ(seen, std::set<SequenceCall>{call});
}

TEST(Policy, RefusesWhatCannotRunWithEveryObstacle) {
  SequencePolicy policy;
  try {
    policy.choose(call_of(6, 3, 3, 2, true));
    FAIL();
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    for (const char* part : {"sequence_exchange: nothing can run", "all_to_all: 3 heads",
                             "gather: a causal call", "6 by 4", "band: the call has no window", "ring: "})
      EXPECT_NE(text.find(part), std::string::npos) << part << '\n' << text;
  }
  policy.named = SequenceExchange::kBand;
  EXPECT_THROW(policy.choose(call_of(16, 4, 4, 2, true)), ConfigError);
}

TEST(Names, AreFoundAgain) {
  for (SequenceExchange exchange : {SequenceExchange::kAllToAll, SequenceExchange::kGather,
                                    SequenceExchange::kBand, SequenceExchange::kRing})
    EXPECT_EQ(exchange_named(name_of(exchange)), exchange);
  EXPECT_FALSE(exchange_named("auto"));
}

}  // namespace
}  // namespace dew
