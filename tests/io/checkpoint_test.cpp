// Saving: what the file holds, what is kept, and that a failure of any rank is a failure of all.
#include "io/checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "io/checkpoint_cases.h"
#include "io/checkpoint_writer.h"
#include "io/hdf5_file.h"

namespace dew {
namespace {

using namespace testing;

void save(const std::string& directory, State& state, const RunState& run, std::int64_t keep = 2) {
  save_checkpoint(directory, state.shards, run, keep, world());
}

State filled(DType dtype = DType::kF32) {
  State state(fsdp(world().size()), world().rank(), dtype);
  state.fill();
  return state;
}

TEST(Checkpoint, HoldsGlobalNamesShapesAndElements) {
  const SharedDirectory directory;
  for (const Sharding& sharding : {fsdp(world().size()), replicas(world().size())}) {
    State state(sharding, world().rank(), DType::kF64);
    state.fill();

    save(directory.path(), state, run_state(7));

    const Hdf5File file = Hdf5File::open(directory.path() + "/step_00000007.h5");
    const std::vector<NamedShape> model = small_model();
    for (std::size_t d = 0; d < model.size(); ++d) {
      const Hdf5Dataset dataset = file.dataset(model[d].name);
      ASSERT_EQ(dataset.shape(), model[d].shape);
      ASSERT_EQ(dataset.dtype(), DType::kF64);
      std::vector<double> elements(static_cast<std::size_t>(model[d].shape.numel()));
      const std::vector<std::int64_t> origin(static_cast<std::size_t>(model[d].shape.dims()), 0);
      dataset.read({model[d].shape, origin, model[d].shape}, elements.data());
      std::uint64_t checksum = 0;
      for (std::size_t i = 0; i < elements.size(); ++i) {
        ASSERT_EQ(elements[i], element_value(d, static_cast<std::int64_t>(i))) << model[d].name << ' ' << i;
        checksum += element_hash(i, std::bit_cast<std::uint64_t>(elements[i]));
      }
      EXPECT_EQ(file.read_unsigned(model[d].name, "checksum"), checksum);
    }
    world().barrier();
  }
}

TEST(Checkpoint, HasTheTreeOfTheContract) {
  const SharedDirectory directory;
  State state = filled();
  RunState run = run_state(12);
  run.resolved_yaml =
      std::string(100'000, '#') + run.resolved_yaml;  // above HDF5's 64 KiB of an object header

  save(directory.path(), state, run);

  const Hdf5File file = Hdf5File::open(directory.path() + "/step_00000012.h5");
  const std::vector<std::string> wanted{"/data",
                                        "/ema",
                                        "/ema/norm",
                                        "/optimizer",
                                        "/optimizer/layers.0.attention.wq",
                                        "/optimizer/layers.0.attention.wq/m",
                                        "/params",
                                        "/params/embed",
                                        "/params/layers.0.attention.wq",
                                        "/params/layers.0.experts",
                                        "/params/norm",
                                        "/params/scale",
                                        "/run"};
  EXPECT_EQ(file.names(), wanted);
  EXPECT_EQ(file.read_signed("/run", "step"), 12);
  EXPECT_EQ(file.read_signed("/run", "tokens"), 12'000);
  EXPECT_EQ(file.read_unsigned("/run", "seed"), run.seed);
  EXPECT_EQ(file.read_text("/run", "config"), run.resolved_yaml);
  EXPECT_EQ(file.read_text("/run", "version"), "0.1.0");
  EXPECT_EQ(file.read_signed("/data", "epoch"), 3);
  EXPECT_EQ(file.read_signed("/data", "row"), 77);
  EXPECT_EQ(file.read_signed("/data", "windows"), 257);
}

TEST(Checkpoint, IsTheSameFileFromEveryLayout) {
  const SharedDirectory directory;
  State whole(replicas(world().size()), world().rank(), DType::kF32);
  State sharded = filled();
  whole.fill();

  save(directory.path() + "/whole", whole, run_state(1));
  save(directory.path() + "/sharded", sharded, run_state(1));

  EXPECT_EQ(read_bytes(directory.path() + "/whole/step_00000001.h5"),
            read_bytes(directory.path() + "/sharded/step_00000001.h5"));
}

TEST(Checkpoint, KeepsTheNewestFilesAndRemovesLeftovers) {
  const SharedDirectory directory;
  State state = filled();
  save(directory.path(), state, run_state(1));
  if (world().rank() == 0) write_bytes(directory.path() + "/.step_00000009.h5.partial", "torn");
  if (world().rank() == 0) write_bytes(directory.path() + "/notes.txt", "mine");

  for (const std::int64_t step : {2, 3, 4}) save(directory.path(), state, run_state(step));

  const std::vector<std::string> wanted{"notes.txt", "step_00000003.h5", "step_00000004.h5"};
  EXPECT_EQ(file_names(directory.path()), wanted);
  EXPECT_EQ(checkpoint_steps(directory.path()), (std::vector<std::int64_t>{4, 3}));
}

TEST(Checkpoint, CountsOnlyWholeFilesAsKept) {
  const SharedDirectory directory;
  State state = filled();
  for (const std::int64_t step : {1, 2, 3}) save(directory.path(), state, run_state(step), 3);
  world().barrier();
  if (world().rank() == 0) write_bytes(directory.path() + "/step_00000003.h5", "garbage");
  if (world().rank() == 0) write_bytes(directory.path() + "/step_00000009.h5", "of an abandoned run");

  save(directory.path(), state, run_state(4), 2);

  EXPECT_EQ(checkpoint_steps(directory.path()), (std::vector<std::int64_t>{9, 4, 3, 2}));
}

TEST(Checkpoint, HasItsNameOnlyWhenItIsWhole) {
  const SharedDirectory directory;
  State state = filled();
  const RunState run = run_state(6);
  CheckpointWriter writer(directory.path(), state.shards, run, world());
  const auto named = [&] {
    world().barrier();
    return checkpoint_steps(directory.path());
  };

  writer.prepare();
  EXPECT_TRUE(named().empty());
  writer.write();
  EXPECT_TRUE(named().empty());
  writer.sync();
  EXPECT_TRUE(named().empty());
  world().barrier();
  writer.publish();

  EXPECT_EQ(named(), std::vector<std::int64_t>{6});
}

TEST(Checkpoint, ReplacesAFileOfTheSameStep) {
  const SharedDirectory directory;
  State state = filled();
  save(directory.path(), state, run_state(5));
  RunState other = run_state(5);
  other.tokens = 1;

  save(directory.path(), state, other);

  EXPECT_EQ(Hdf5File::open(directory.path() + "/step_00000005.h5").read_signed("/run", "tokens"), 1);
  EXPECT_EQ(file_names(directory.path()).size(), 1u);
}

// The write of one rank is refused by the system, in the middle, for a reason that HDF5 never sees.
TEST(Checkpoint, OfAFailingRankFailsOnEveryRank) {
  const SharedDirectory directory;
  State state = filled(DType::kF64);
  save(directory.path(), state, run_state(1));
  const RunState run = run_state(2);
  CheckpointWriter writer(directory.path(), state.shards, run, world());
  writer.prepare();

  std::string message;
  {
    const bool last = world().rank() == world().size() - 1;
    const FileSizeLimit limit(last ? 6000 : RLIM_INFINITY);
    message = shared_error_of([&] { writer.write(); });
  }

  EXPECT_NE(message.find("File too large"), std::string::npos) << message;
  EXPECT_NE(message.find("step_00000002.h5"), std::string::npos) << message;
  EXPECT_EQ(file_names(directory.path()), std::vector<std::string>{"step_00000001.h5"});
  world().barrier();
  save(directory.path(), state, run);  // the process is as good as before
  EXPECT_EQ(checkpoint_steps(directory.path()), (std::vector<std::int64_t>{2, 1}));
}

TEST(Checkpoint, ThatExceedsAnyLimitFailsBeforeTheFileIsMade) {
  const SharedDirectory directory;
  State state = filled();

  for (const rlim_t limit_bytes : {rlim_t{0}, rlim_t{1000}, rlim_t{20'000}}) {
    const FileSizeLimit limit(world().rank() == 0 ? limit_bytes : RLIM_INFINITY);
    const std::string message = shared_error_of([&] { save(directory.path(), state, run_state(1)); });
    EXPECT_NE(message.find("File too large"), std::string::npos) << message;
    EXPECT_NE(message.find("this process may write " + std::to_string(limit_bytes)), std::string::npos)
        << message;
  }

  EXPECT_TRUE(file_names(directory.path()).empty());
}

TEST(Checkpoint, IntoNoDirectoryNamesTheReason) {
  const SharedDirectory directory;
  if (world().rank() == 0) write_bytes(directory.path() + "/file", "");
  State state = filled();

  const std::string message =
      shared_error_of([&] { save(directory.path() + "/file/below", state, run_state(1)); });

  EXPECT_NE(message.find("Not a directory"), std::string::npos) << message;
}

TEST(Checkpoint, NeedsOneOwnerOfEachElement) {
  const SharedDirectory directory;
  State state = filled();
  for (NamedShard& shard : state.shards)
    if (shard.name == "/params/embed" && world().rank() == 0) shard.owned = false;

  const std::string message = shared_error_of([&] { save(directory.path(), state, run_state(1)); });

  EXPECT_NE(message.find("/params/embed has 231 elements and the ranks own "), std::string::npos) << message;
}

TEST(Checkpoint, NeedsTheSameListOnEveryRank) {
  if (world().size() == 1) return;  // one rank cannot differ
  const SharedDirectory directory;
  State state = filled();
  if (world().rank() == 1) std::swap(state.shards[0], state.shards[1]);

  const std::string message = shared_error_of([&] { save(directory.path(), state, run_state(1)); });

  EXPECT_NE(message.find("the ranks list different datasets"), std::string::npos) << message;
}

}  // namespace
}  // namespace dew
