// Restoring: any layout from any other, the newest whole file, and agreement of the ranks on what is damaged.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "io/checkpoint_cases.h"
#include "io/checkpoint_reader.h"
#include "io/hdf5_file.h"

namespace dew {
namespace {

using namespace testing;

std::optional<Restored> restore(const std::string& directory, State& state, const HostGroup& group,
                                std::vector<std::string> optional_prefixes = {}) {
  LogFile log;
  return restore_newest(directory, state.shards, optional_prefixes, group, log.log);
}

std::vector<Sharding> shardings(int ranks) {
  std::vector<Sharding> all{fsdp(ranks), replicas(ranks), tensor_columns(ranks)};
  if (ranks == 4) all.push_back(grid());
  return all;
}

void save(const std::string& directory, const Sharding& sharding, std::int64_t step, DType dtype,
          const HostGroup& group) {
  State state(sharding, group.rank(), dtype);
  state.fill();
  save_checkpoint(directory, state.shards, run_state(step), 3, group);
}

/// What is wrong after a restore, or "". Throws nothing, so that ranks outside of the group are not left
/// waiting.
std::string problem_of_restore(const std::string& directory, const Sharding& to, std::int64_t step,
                               const HostGroup& group) {
  State state(to, group.rank(), DType::kF32);
  state.spoil();
  std::optional<Restored> restored;
  const std::string error = shared_error_of([&] { restored = restore(directory, state, group); });
  if (!restored) return "nothing restored " + error;
  if (restored->state.step != step) return "step " + std::to_string(restored->state.step);
  const std::int64_t wrong = state.wrong(DType::kF32);
  return wrong == 0 ? "" : std::to_string(wrong) + " wrong elements";
}

TEST(Restore, GivesEveryElementInEveryOtherLayout) {
  const SharedDirectory directory;
  std::int64_t step = 0;
  for (int writers = 1; writers <= world().size(); ++writers) {
    const HostGroup writing = world().split(world().rank() < writers ? 0 : 1, world().rank());
    for (const Sharding& from : shardings(writers)) {
      ++step;
      if (world().rank() < writers) save(directory.path(), from, step, DType::kF32, writing);
      world().barrier();
      for (int readers = 1; readers <= world().size(); ++readers) {
        const HostGroup reading = world().split(world().rank() < readers ? 0 : 1, world().rank());
        if (world().rank() >= readers) continue;
        for (const Sharding& to : shardings(readers))
          EXPECT_EQ(problem_of_restore(directory.path(), to, step, reading), "")
              << writers << " -> " << readers;
      }
    }
  }
}

TEST(Restore, GivesTheRunState) {
  const SharedDirectory directory;
  save(directory.path(), fsdp(world().size()), 42, DType::kF32, world());
  State state(fsdp(world().size()), world().rank(), DType::kF32);

  const std::optional<Restored> restored = restore(directory.path(), state, world());

  ASSERT_TRUE(restored);
  const RunState wanted = run_state(42);
  EXPECT_EQ(restored->state.tokens, wanted.tokens);
  EXPECT_EQ(restored->state.seed, wanted.seed);
  EXPECT_EQ(restored->state.epoch, wanted.epoch);
  EXPECT_EQ(restored->state.row, wanted.row);
  EXPECT_EQ(restored->state.windows, wanted.windows);
  EXPECT_EQ(restored->state.resolved_yaml, wanted.resolved_yaml);
  EXPECT_EQ(restored->state.version, wanted.version);
  EXPECT_EQ(restored->file, directory.path() + "/step_00000042.h5");
  EXPECT_TRUE(restored->missing_prefixes.empty());
}

/// A whole file of step 1 without tensors and without the number of windows, under any name.
void write_bare_file(const std::string& path) {
  if (world().rank() == 0) {
    Hdf5File file = Hdf5File::create(path);
    file.make_group("/run");
    for (const char* name : {"format", "step", "tokens"}) file.write_attribute("/run", name, std::int64_t{1});
    file.write_attribute("/run", "seed", std::uint64_t{1});
    for (const char* name : {"version", "config"})
      file.write_attribute("/run", name, std::string_view("text"));
    file.make_group("/data");
    for (const char* name : {"epoch", "row"}) file.write_attribute("/data", name, std::int64_t{5});
    file.close();
  }
  world().barrier();
}

TEST(Restore, ReadsNoWindowsFromAFileThatDoesNotTell) {
  const SharedDirectory directory;
  write_bare_file(directory.path() + "/step_00000001.h5");
  LogFile log;

  const std::optional<Restored> restored = restore_newest(directory.path(), {}, {}, world(), log.log);

  ASSERT_TRUE(restored) << log.text();
  EXPECT_EQ(restored->state.row, 5);
  EXPECT_EQ(restored->state.windows, 0);
}

TEST(Restore, PassesOverAFileWhoseStepIsNotThatOfItsName) {
  const SharedDirectory directory;
  write_bare_file(directory.path() + "/step_00000001.h5");
  write_bare_file(directory.path() + "/step_00000004.h5");
  LogFile log;

  const std::optional<Restored> restored = restore_newest(directory.path(), {}, {}, world(), log.log);

  ASSERT_TRUE(restored) << log.text();
  EXPECT_EQ(restored->file, directory.path() + "/step_00000001.h5");
  EXPECT_TRUE(std::filesystem::exists(directory.path() + "/step_00000004.h5.damaged"));
}

TEST(Restore, ConvertsBetweenFloatTypes) {
  const SharedDirectory directory;
  for (const DType stored : {DType::kF32, DType::kF64}) {
    save(directory.path(), fsdp(world().size()), 1, stored, world());
    for (const DType wanted : {DType::kF32, DType::kF64}) {
      State state(tensor_columns(world().size()), world().rank(), wanted);
      state.spoil();
      ASSERT_TRUE(restore(directory.path(), state, world()));
      EXPECT_EQ(state.wrong(stored), 0) << name_of(stored) << " -> " << name_of(wanted);
    }
    world().barrier();
  }
}

TEST(Restore, ReadsBoxesInPiecesOfAnySize) {
  const SharedDirectory directory;
  save(directory.path(), fsdp(world().size()), 1, DType::kF64, world());
  const Hdf5File file = Hdf5File::open(directory.path() + "/step_00000001.h5");
  for (const std::int64_t piece_elements : {1, 3, 256, 258, 100'000})
    for (const DType wanted : {DType::kF32, DType::kF64}) {
      State state(fsdp(world().size()), world().rank(), wanted);
      state.spoil();
      for (const NamedShard& shard : state.shards)
        read_shard(file.dataset(shard.name), shard, piece_elements);
      EXPECT_EQ(state.wrong(DType::kF64), 0) << piece_elements;
    }
}

TEST(Restore, OfAnEmptyOrMissingDirectoryIsNothing) {
  const SharedDirectory directory;
  State state(fsdp(world().size()), world().rank(), DType::kF32);

  EXPECT_FALSE(restore(directory.path(), state, world()));
  EXPECT_FALSE(restore(directory.path() + "/none", state, world()));
}

/// Four bytes of an element of /params/layers.0.attention.wq as they stand in a file.
std::size_t place_of_element(const std::string& bytes, std::int64_t index) {
  const auto value = static_cast<float>(element_value(1, index));
  return bytes.find(std::string(reinterpret_cast<const char*>(&value), sizeof value));
}

struct Damage {
  const char* name;
  const char* reason;
  std::function<void(std::string&)> apply;
};

const std::vector<Damage>& damages() {
  static const std::vector<Damage> kDamages{
      {"truncated", "HDF5 cannot open", [](std::string& bytes) { bytes.resize(bytes.size() - 1000); }},
      {"cut to its head", "HDF5 cannot open", [](std::string& bytes) { bytes.resize(512); }},
      {"empty", "HDF5 cannot open", [](std::string& bytes) { bytes.clear(); }},
      {"garbage", "HDF5 cannot open", [](std::string& bytes) { std::fill(bytes.begin(), bytes.end(), 'x'); }},
      {"one bit flipped", "the checksum of /params/layers.0.attention.wq",
       [](std::string& bytes) { bytes[place_of_element(bytes, 4000)] ^= 1; }},
      {"two elements swapped", "the checksum of /params/layers.0.attention.wq",
       [](std::string& bytes) {
         const auto at = bytes.begin();
         std::swap_ranges(at + static_cast<std::ptrdiff_t>(place_of_element(bytes, 10)),
                          at + static_cast<std::ptrdiff_t>(place_of_element(bytes, 11)),
                          at + static_cast<std::ptrdiff_t>(place_of_element(bytes, 11)));
       }},
      {"shifted by one place", "the checksum of /params/layers.0.attention.wq",
       [](std::string& bytes) {
         const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(place_of_element(bytes, 10));
         std::rotate(at, at + 4, at + 400);
       }},
  };
  return kDamages;
}

TEST(Restore, PassesOverADamagedFileToTheNextOlder) {
  const SharedDirectory directory;
  const std::string newest = directory.path() + "/step_00000002.h5";
  for (const Damage& damage : damages()) {
    for (const std::int64_t step : {1, 2})
      save(directory.path(), fsdp(world().size()), step, DType::kF32, world());
    if (world().rank() == 0) {
      std::string bytes = read_bytes(newest);
      damage.apply(bytes);
      write_bytes(newest, bytes);
    }
    world().barrier();
    State state(fsdp(world().size()), world().rank(), DType::kF32);
    state.spoil();
    LogFile log;

    const std::optional<Restored> restored =
        restore_newest(directory.path(), state.shards, {}, world(), log.log);

    ASSERT_TRUE(restored) << damage.name;
    EXPECT_EQ(restored->state.step, 1) << damage.name;
    EXPECT_EQ(state.wrong(DType::kF32), 0) << damage.name;
    const std::string line = log.text();
    EXPECT_EQ(line.find(newest) != std::string::npos, world().rank() == 0) << damage.name << ": " << line;
    EXPECT_EQ(line.find(damage.reason) != std::string::npos, world().rank() == 0)
        << damage.name << ": " << line;
    world().barrier();
  }
}

TEST(Restore, WithoutAnyWholeFileIsAnError) {
  const SharedDirectory directory;
  save(directory.path(), fsdp(world().size()), 1, DType::kF32, world());
  if (world().rank() == 0) Hdf5File::create(directory.path() + "/step_00000001.h5").make_group("/params");
  world().barrier();
  State state(fsdp(world().size()), world().rank(), DType::kF32);
  LogFile log;

  const std::string message =
      shared_error_of([&] { restore_newest(directory.path(), state.shards, {}, world(), log.log).reset(); });

  EXPECT_NE(message.find("no checkpoint in " + directory.path() + " is whole"), std::string::npos) << message;
  if (world().rank() == 0) {
    EXPECT_NE(log.text().find("read attribute format of /run"), std::string::npos);
  }
}

// Each rank is given its own directory; that of the last holds garbage under the same name.
TEST(Restore, AgreesWhenOneRankAloneSeesTheDamage) {
  const SharedDirectory directory;
  const std::string good = directory.path() + "/good", bad = directory.path() + "/bad";
  save(good, fsdp(world().size()), 1, DType::kF32, world());
  save(bad, fsdp(world().size()), 1, DType::kF32, world());
  if (world().rank() == 0) write_bytes(bad + "/step_00000001.h5", "garbage");
  world().barrier();
  State state(fsdp(world().size()), world().rank(), DType::kF32);

  const std::string& mine = world().rank() == world().size() - 1 ? bad : good;
  const std::string message = shared_error_of([&] { restore(mine, state, world()).reset(); });

  EXPECT_NE(message.find("is whole; the newest is step_00000001.h5"), std::string::npos) << message;
}

std::string mismatch_of(const std::vector<NamedShape>& model,
                        const std::vector<std::string>& optional_prefixes = {}) {
  const SharedDirectory directory;
  save(directory.path(), fsdp(world().size()), 1, DType::kF32, world());
  State state(fsdp(world().size()), world().rank(), DType::kF32, model);
  return shared_error_of([&] { restore(directory.path(), state, world(), optional_prefixes).reset(); });
}

TEST(Restore, NamesADatasetOfAnotherShape) {
  std::vector<NamedShape> model = small_model();
  model[1].shape = {257, 16};

  const std::string message = mismatch_of(model);

  EXPECT_NE(message.find("/params/layers.0.attention.wq has shape [16, 257] in it and [257, 16] in this run"),
            std::string::npos)
      << message;
}

TEST(Restore, NamesAMissingDatasetAndTheNearestThereIs) {
  std::vector<NamedShape> model = small_model();
  model[1].name = "/params/layers.0.attention.wk";

  const std::string message = mismatch_of(model);

  EXPECT_NE(message.find("no /params/layers.0.attention.wk of shape [16, 257]"), std::string::npos)
      << message;
  EXPECT_NE(message.find("nearest name in it is /params/layers.0.attention.wq"), std::string::npos)
      << message;
}

TEST(Restore, NamesADatasetThatTheRunDoesNotHave) {
  std::vector<NamedShape> model = small_model();
  const std::string left_out = model[1].name;
  model.erase(model.begin() + 1);

  const std::string message = mismatch_of(model, {"/ema/"});

  EXPECT_NE(message.find("it holds " + left_out + ", which this run does not have"), std::string::npos)
      << message;
}

TEST(Restore, TellsWhichOptionalShardsAreMissing) {
  const SharedDirectory directory;
  save(directory.path(), fsdp(world().size()), 1, DType::kF32, world());
  std::vector<NamedShape> model = small_model();
  model.push_back({"/optional/norm", {5}});
  State state(fsdp(world().size()), world().rank(), DType::kF32, model);
  state.fill();
  const Tensor untouched = state.shards.back().local;

  const std::optional<Restored> restored =
      restore(directory.path(), state, world(), {"/optional/", "/ema/", "/unused/"});

  ASSERT_TRUE(restored);
  EXPECT_EQ(restored->missing_prefixes, std::vector<std::string>{"/optional/"});
  EXPECT_TRUE(restored->unused_prefixes.empty());
  EXPECT_EQ(state.wrong(DType::kF32), 0);
}

TEST(Restore, TellsWhichOptionalPrefixesOfTheFileNoShardAsksFor) {
  const SharedDirectory directory;
  save(directory.path(), fsdp(world().size()), 1, DType::kF32, world());
  std::vector<NamedShape> model = small_model();
  model.pop_back();  // the only one under /ema/
  State state(fsdp(world().size()), world().rank(), DType::kF32, model);

  const std::optional<Restored> restored =
      restore(directory.path(), state, world(), {"/optimizer/", "/ema/", "/em/", "/unused/"});

  ASSERT_TRUE(restored);
  EXPECT_EQ(restored->unused_prefixes, std::vector<std::string>{"/ema/"});
  EXPECT_TRUE(restored->missing_prefixes.empty());
  EXPECT_EQ(state.wrong(DType::kF32), 0);
}

TEST(Restore, NeedsOptionalShardsTogether) {
  std::vector<NamedShape> model = small_model();
  model.push_back({"/ema/embed", {33, 7}});

  const std::string message = mismatch_of(model, {"/ema/"});

  EXPECT_NE(message.find("no /ema/embed of shape [33, 7]"), std::string::npos) << message;
}

}  // namespace
}  // namespace dew
