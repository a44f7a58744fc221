// What ranks must see alike before a run begins.
#include "train/run_setup.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/mpi_world.h"

namespace dew {
namespace {

using testing::world;

/// The message of a setup in which each rank reads a text of its own length, or "".
std::string refusal_of_texts(const std::vector<std::size_t>& lengths) {
  const auto rank = static_cast<std::size_t>(world().rank());
  const std::string path =
      (std::filesystem::temp_directory_path() / ("dew_setup_" + std::to_string(rank) + ".txt")).string();
  std::ofstream(path) << std::string(lengths[rank], 'x');
  Config config = Config::from_text("model: {width: 16, heads: 2}\ndata: {seq_len: 16, batch: 4}\n", "setup");
  config.set("data.text=" + path);
  std::string message;
  try {
    prepare_run(std::move(config), world());
  } catch (const ConfigError& error) {
    message = error.what();
  }
  std::filesystem::remove(path);
  return message;
}

TEST(RunSetup, RefusesDataThatDifferBetweenRanks) {
  const std::string message = refusal_of_texts({20000, 9000});
  EXPECT_NE(message.find("data: differs between ranks: rank 0 sees 18000 training tokens"), std::string::npos)
      << message;
  EXPECT_NE(message.find("rank 1 sees 8100 training tokens"), std::string::npos) << message;
}

TEST(RunSetup, RefusesOnAllRanksWhatOneFindsTooShort) {
  EXPECT_NE(refusal_of_texts({20000, 9}), "");
  EXPECT_NE(refusal_of_texts({9, 20000}), "");
}

TEST(RunSetup, AcceptsTheSameDataOnAllRanks) {
  EXPECT_EQ(refusal_of_texts({20000, 20000}), "");
}

}  // namespace
}  // namespace dew
