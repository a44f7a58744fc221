// Damaged token directories, in this process on two ranks, seen by both or by one of them alone: a clear
// error on both, or a right run of what is sound. DEW_FUZZ_DRAWS and DEW_FUZZ_SEED ask for other draws than
// those that run by default; a failing draw prints its seed and what was done to the directory.
// DEW_FUZZ_COUNTS prints how many ended in which way.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "system/layout_cases.h"
#include "system/mutant_run.h"
#include "system/shared_folder.h"
#include "system/token_mutation.h"

namespace dew::testing {
namespace {

constexpr const char* kName = "tokens.yaml";
constexpr std::int64_t kParts = 10, kSeqLen = 8;

/// A description whose paths are each rank's own.
std::string description_on(const std::string& directory, Draws& draws) {
  constexpr std::array kMeshes{"replica: 2", "fsdp: 2", "sequence: 2", "tensor: 2", "stage: 2"};
  return "run: {steps: 2}\nmesh: {" + std::string(draws.one_of(kMeshes)) +
         "}\n"
         "layout: {min_shard: 16, tolerance: 1}\n"
         "model: {layers: 1, width: 8, heads: 2, mlp: 8}\n"
         "data: {tokens: " +
         directory + ", seq_len: " + std::to_string(kSeqLen) + ", batch: 4}\n";
}

bool names_a_file(const std::string& message) {
  for (const char* file : {"meta.json", "train.bin", "val.bin", "train.mask", "val.mask"})
    if (message.find(file) != std::string::npos) return true;
  return false;
}

/// What else the data alone may be refused for: too few of them, others on another rank, nothing to learn.
bool speaks_of_data(const std::string& message) {
  for (const char* words :
       {"data.seq_len (", "data.validation (", "data: differs between ranks",
        "data: every target of the step is masked", "every target of the evaluation is masked"})
    if (message.find(words) != std::string::npos) return true;
  return false;
}

class TokenFuzz : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(TokenFuzz, EveryDrawIsRefusedClearlyOrSoundAndTrains) {
  const std::int64_t draws = number_from("DEW_FUZZ_DRAWS", 1000), first = number_from("DEW_FUZZ_SEED", 1);
  const SharedFolder folder;
  // One name of one length, so that messages of the ranks differ only where the data do.
  const std::string whole = folder.path() + "/data", damaged = folder.path() + "/hurt";
  MutantWatch watch;
  std::map<End, int> count;
  for (std::int64_t i = GetParam(); i < draws; i += kParts) {
    const auto seed = static_cast<std::uint64_t>(first + i);
    Draws random(seed);
    std::string done;
    bool sound = false;
    if (world().rank() == 0) {
      Draws same(seed), again(seed);
      write_valid_tokens(whole, same);
      write_valid_tokens(damaged, again);
      done = damage_tokens(damaged, again);
      sound = is_sound(damaged, kSeqLen);
    }
    done = world().broadcast(done, 0);
    sound = !world().broadcast(sound ? "sound" : "", 0).empty();
    const std::size_t seen_by = random.below(4);  // rank 0 alone, rank 1 alone, or both
    const bool mine = seen_by >= 2 || static_cast<int>(seen_by) == world().rank();
    const std::string shown = "DEW_FUZZ_DRAWS=1 DEW_FUZZ_SEED=" + std::to_string(seed) + ", damaged on " +
                              (seen_by < 2 ? "rank " + std::to_string(seen_by) : "both") + ":\n" + done;
    watch.begin(shown);
    const Ending ending = ending_of(description_on(mine ? damaged : whole, random), kName, folder.path());
    ++count[ending.end];
    EXPECT_EQ(fault_of(ending, kName), "") << shown;
    EXPECT_TRUE(ending.end != End::kTrained || sound) << "trained on damaged data\n" << shown;
    for (const std::string& message : ending.messages)
      EXPECT_TRUE(names_a_file(message) || speaks_of_data(message)) << message << '\n' << shown;
    const bool must_train = sound && seen_by >= 2 && !speaks_of_data(ending.text());
    EXPECT_TRUE(ending.end == End::kTrained || !must_train) << ending.text() << shown;
  }
  if (std::getenv("DEW_FUZZ_COUNTS") != nullptr && world().rank() == 0)
    for (const auto& [end, times] : count) std::printf("  ending %d: %d\n", static_cast<int>(end), times);
}

INSTANTIATE_TEST_SUITE_P(Parts, TokenFuzz, ::testing::Range(std::int64_t{0}, kParts));

TEST(ValidTokens, AreSoundAndTrain) {
  const SharedFolder folder;
  const std::string directory = folder.path() + "/data";
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Draws draws(seed);
    if (world().rank() == 0) write_valid_tokens(directory, draws);
    world().barrier();
    EXPECT_TRUE(is_sound(directory, kSeqLen)) << seed;
    Draws mesh(seed);
    const Ending ending = ending_of(description_on(directory, mesh), kName, folder.path());
    EXPECT_EQ(ending.end, End::kTrained) << seed << ": " << ending.text();
  }
}

}  // namespace
}  // namespace dew::testing
