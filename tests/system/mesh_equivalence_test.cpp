// Every axis, every pair and random products of axes, 20 steps in f64 against one rank, and every layout's
// checkpoint continued on another layout. By default a few of each run; DEW_ALL_LAYOUTS=1 runs all.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "system/layout_cases.h"

namespace dew::testing {
namespace {

constexpr std::array<const char*, 6> kAxes{"replica", "stage", "fsdp", "expert", "sequence", "tensor"};
using Extents = std::array<int, 6>;

bool all_wanted() {
  return number_from("DEW_ALL_LAYOUTS", 0) != 0;
}

int ranks_of(const Extents& extents) {
  int ranks = 1;
  for (int extent : extents) ranks *= extent;
  return ranks;
}

Words mesh_of(const Extents& extents) {
  Words words;
  for (std::size_t a = 0; a < kAxes.size(); ++a)
    words.push_back(std::string("mesh.") + kAxes[a] + "=" + std::to_string(extents[a]));
  return words;
}

std::string text_of(const Extents& extents) {
  std::string text;
  for (std::size_t a = 0; a < kAxes.size(); ++a)
    if (extents[a] > 1) text += std::string(kAxes[a]) + ' ' + std::to_string(extents[a]) + ' ';
  return text;
}

/// A description that every product of 2s, 3s and 4s up to 16 ranks divides: 12 heads, 4 of keys (whole over
/// tensor 3), a vocabulary of 257, 12 positions, 288 rows in 4 microbatches.
RunFolder make_run() {
  return RunFolder(
      "optimizer: {lr: 0.01, clip: 0.5, weight_decay: 0.1}\n"
      "pipeline: {microbatches: 4}\n");
}

Words settings(const Extents& extents) {
  Words words = f64_with(mesh_of(extents));
  words.emplace_back(
      "model={family: decoder, layers: 7, width: 18, heads: 12, kv_heads: 4, head_width: 2, mlp: 24, "
      "vocab: 257, tied: true, window: [5, 0]}");
  for (const char* word :
       {"data={sentences: 300, seq_len: 12, batch: 288, validation: 0.1}", "layout.min_shard=1",
        "layout.tolerance=1", "eval.batches=2", "ema=0.9", "run.steps=20"})
    words.emplace_back(word);
  return words;
}

void expect_equal_to_one_rank(const Extents& extents) {
  const RunFolder run = make_run();
  const Outcome outcome = run.train(ranks_of(extents), settings(extents), {"--verify=20"});
  EXPECT_EQ(outcome.status, 0) << text_of(extents) << '\n' << outcome.text();
  EXPECT_TRUE(outcome.says(" leaves compared, 0 failed")) << outcome.text();
}

std::vector<Extents> single_axes() {
  std::vector<Extents> all;
  for (std::size_t a = 0; a < kAxes.size(); ++a)
    for (int extent : {2, 3}) {
      Extents extents{1, 1, 1, 1, 1, 1};
      extents[a] = extent;
      all.push_back(extents);
    }
  return all;
}

std::vector<Extents> pairs() {
  std::vector<Extents> all;
  for (std::size_t a = 0; a < kAxes.size(); ++a)
    for (std::size_t b = a + 1; b < kAxes.size(); ++b)
      for (const auto& [first, second] : {std::pair{2, 2}, std::pair{2, 3}, std::pair{3, 2}}) {
        Extents extents{1, 1, 1, 1, 1, 1};
        extents[a] = first;
        extents[b] = second;
        all.push_back(extents);
      }
  return all;
}

std::vector<Extents> random_products(std::size_t count) {
  std::mt19937 random(42);
  std::vector<Extents> all;
  while (all.size() < count) {
    Extents extents{1, 1, 1, 1, 1, 1};
    for (int tries = 0; tries < 8; ++tries) {
      int& extent = extents[random() % 6];
      const int factor = random() % 3 == 0 ? 3 : 2;
      if (extent == 1 && ranks_of(extents) * factor <= 16) extent = factor;
    }
    if (std::count_if(extents.begin(), extents.end(), [](int e) { return e > 1; }) > 2)
      all.push_back(extents);
  }
  return all;
}

/// All of a list, or every `step`-th.
std::vector<Extents> chosen(const std::vector<Extents>& all, std::size_t step) {
  if (all_wanted()) return all;
  std::vector<Extents> some;
  for (std::size_t i = 0; i < all.size(); i += step) some.push_back(all[i]);
  return some;
}

TEST(MeshEquivalence, EveryAxisAlone) {
  for (const Extents& extents : chosen(single_axes(), 4)) expect_equal_to_one_rank(extents);
}

TEST(MeshEquivalence, EveryPair) {
  for (const Extents& extents : chosen(pairs(), 16)) expect_equal_to_one_rank(extents);
}

TEST(MeshEquivalence, RandomProducts) {
  for (const Extents& extents : chosen(random_products(30), 15)) expect_equal_to_one_rank(extents);
}

// Ten steps on one layout, ten on another: the losses of twenty on one rank.
TEST(MeshEquivalence, AnyCheckpointContinuesOnAnyOtherLayout) {
  constexpr double kBound = 1e-11;
  const auto train = [](const RunFolder& run, const Extents& extents, const char* steps) {
    Words words = settings(extents);
    words.emplace_back(std::string("run.steps=") + steps);
    const Outcome outcome = run.train(ranks_of(extents), words);
    ASSERT_EQ(outcome.status, 0) << text_of(extents) << outcome.text();
  };
  const RunFolder whole = make_run();
  train(whole, {1, 1, 1, 1, 1, 1}, "20");
  std::vector<Extents> layouts = chosen(single_axes(), 3);
  for (const Extents& extents : chosen(random_products(30), 10)) layouts.push_back(extents);
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    const RunFolder run = make_run();
    train(run, layouts[i], "10");
    train(run, layouts[(i + 1) % layouts.size()], "20");
    EXPECT_LE(relative_distance(run.losses(), whole.losses()), kBound)
        << text_of(layouts[i]) << "then " << text_of(layouts[(i + 1) % layouts.size()]);
    EXPECT_LE(std::abs(run.metrics().back()["val_loss"].get<double>() -
                       whole.metrics().back()["val_loss"].get<double>()),
              kBound * whole.metrics().back()["val_loss"].get<double>());
  }
}

}  // namespace
}  // namespace dew::testing
