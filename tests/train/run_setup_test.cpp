// What ranks must see alike before a run begins.
#include "train/run_setup.h"

#include <gtest/gtest.h>

#include "io/temp_folder.h"
#include "support/mpi_world.h"

namespace dew {
namespace {

using testing::world;

/// The message of a setup with this source of data, or "".
std::string refusal_of(const std::string& source) {
  return message_of<ConfigError>([&source] {
    Config config =
        Config::from_text("model: {width: 16, heads: 2}\ndata: {seq_len: 16, batch: 4}\n", "setup");
    config.set(source);
    prepare_run(std::move(config), world());
  });
}

/// The same where each rank reads a text of its own length and letter.
std::string refusal_of_texts(const std::vector<std::size_t>& lengths, const std::string& letters = "xx") {
  const auto rank = static_cast<std::size_t>(world().rank());
  const TempFolder folder;
  return refusal_of("data.text=" + folder.write("text", std::string(lengths[rank], letters[rank])));
}

/// The same where each rank reads token files of its own, with its loss mask or none for "".
std::string refusal_of_masks(const std::vector<std::string>& masks) {
  const std::string& mask = masks[static_cast<std::size_t>(world().rank())];
  const TempFolder folder;
  folder.write("train.bin", std::string(1000, '\7'));
  folder.write("val.bin", "");
  if (!mask.empty()) folder.write("train.mask", mask);
  folder.write("meta.json",
               R"({"tokenizer": "none", "vocab_size": 8, "dtype": "uint8", "train_tokens": 1000, )"
               R"("val_tokens": 0, "eos_id": null})");
  return refusal_of("data.tokens=" + folder.path());
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

TEST(RunSetup, RefusesDataOfOneLengthThatDifferBetweenRanks) {
  EXPECT_NE(refusal_of_texts({20000, 20000}, "xy").find("data: differs between ranks"), std::string::npos);
  const std::string ones(1000, '\1');
  std::string other = ones;
  other[500] = '\0';
  EXPECT_EQ(refusal_of_masks({ones, ones}), "");
  EXPECT_EQ(refusal_of_masks({ones, ""}), "") << "a mask of ones is none";
  EXPECT_NE(refusal_of_masks({ones, other}).find("data: differs between ranks"), std::string::npos);
  EXPECT_NE(refusal_of_masks({"", other}).find("data: differs between ranks"), std::string::npos);
}

TEST(RunSetup, RefusesAMaskOfOtherBytesOnAllRanks) {
  const std::string twos(1000, '\2');
  EXPECT_NE(
      refusal_of_masks({twos, twos}).find("train.mask: the loss mask of token 0 is 2; accepted: 0 and 1"),
      std::string::npos);
}

TEST(RunSetup, AcceptsTheSameDataOnAllRanks) {
  EXPECT_EQ(refusal_of_texts({20000, 20000}), "");
}

/// The message of a setup of generated text with these overrides.
std::string refusal_with(const std::vector<std::string>& overrides) {
  return message_of<ConfigError>([&overrides] {
    Config config = Config::from_text(
        "model: {width: 16, heads: 2}\ndata: {sentences: 40, seq_len: 16, batch: 4}\n", "setup");
    for (const std::string& assignment : overrides) config.set(assignment);
    prepare_run(std::move(config), world());
  });
}

// Their plan would take minutes, or count bytes beyond 64 bits.
TEST(RunSetup, RefusesSizesThatCannotBePlanned) {
  const auto expect = [](const std::vector<std::string>& overrides, const std::string& says) {
    const std::string message = refusal_with(overrides);
    EXPECT_NE(message.find(says), std::string::npos) << says << '\n' << message;
  };
  expect({"data.batch=2000000000", "accumulate=1000000000"},
         "accumulate (--set): 1000000000: gives 1000000000 microbatches over the 4 blocks");
  expect({"mesh.stage=2", "data.batch=2000000000", "accumulate=10000", "pipeline.microbatches=10000"},
         "pipeline.microbatches (--set): 10000: gives 100000000 microbatches");
  expect({"model.layers=65536", "accumulate=4", "data.batch=8"},
         "accumulate (--set): 4: gives 4 microbatches over the 65538 blocks");
  expect({"data.batch=2147483646"}, "data.batch (--set): 2147483646: gives a rank 1073741823 rows of 16");
  expect({"data.batch=2000000", "model.width=16777216", "model.layers=10000", "model.mlp=2",
          "model.head_width=2"},
         "model (line 1): with data.batch 2000000 and data.seq_len 16 may take");
  EXPECT_EQ(refusal_with({"model.layers=100"}), "");
}

}  // namespace
}  // namespace dew
