// The program dew_tokenize as a user runs it: arguments in, exit status, files and messages out.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "io/temp_folder.h"
#include "io/token_source.h"

namespace dew {
namespace {

struct Outcome {
  int status = 0;
  std::string text;  ///< standard output and error
};

Outcome tokenize(const std::string& arguments) {
  const std::string command = std::string(DEW_TOKENIZE_BINARY) + " " + arguments + " 2>&1";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  DEW_CHECK(pipe != nullptr, command);
  Outcome outcome;
  std::array<char, 4096> buffer;
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    outcome.text.append(buffer.data(), count);
  }
  const int status = ::pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

const std::vector<std::string> kWhole{"meta.json", "train.bin", "val.bin"};

/// Every byte value, over more than one buffer of the program.
std::string long_text() {
  std::string text;
  for (std::size_t i = 0; i < 3'000'001; ++i) text += static_cast<char>(i * 31 % 257);
  return text;
}

TEST(Tokenize, WritesADirectoryThatTheTrainerReads) {
  const TempFolder folder;
  const std::string text = long_text(), out = folder.file("deep/tokens");
  const std::string a = folder.write("a", text.substr(0, 1'500'000)),
                    b = folder.write("b", text.substr(1'500'000));

  const Outcome outcome = tokenize(a + " " + b + " --validation 0.2 --out " + out);

  ASSERT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_EQ(names_in(out), kWhole);
  EXPECT_EQ(read_file(out + "/train.bin") + read_file(out + "/val.bin"), text);
  const auto meta = nlohmann::json::parse(read_file(out + "/meta.json"));
  EXPECT_EQ(meta, nlohmann::json::parse(R"({"tokenizer": "bytes", "vocab_size": 256, "dtype": "uint8",
                                            "train_tokens": 2400001, "val_tokens": 600000, "eos_id": null})"));
  const auto tokens = open_token_directory(out), files = open_text_files({a, b}, 0.2);
  for (const Split split : {Split::kTrain, Split::kValidation}) {
    ASSERT_EQ(tokens->tokens(split), files->tokens(split));
    std::vector<std::int32_t> left(static_cast<std::size_t>(tokens->tokens(split))), right(left.size());
    tokens->read(split, 0, left);
    files->read(split, 0, right);
    EXPECT_EQ(left, right) << "both ways to the same bytes give the same run";
  }
}

TEST(Tokenize, KeepsATenthForValidationUnlessTold) {
  const TempFolder folder;
  const std::string text = folder.write("a", std::string(57, 'x'));

  ASSERT_EQ(tokenize(text + " --out " + folder.file("o")).status, 0);
  EXPECT_EQ(std::filesystem::file_size(folder.file("o/val.bin")), 5u);
  ASSERT_EQ(tokenize(text + " --validation 0 --out " + folder.file("p")).status, 0);
  EXPECT_EQ(std::filesystem::file_size(folder.file("p/val.bin")), 0u);
}

TEST(Tokenize, ReplacesTokenFilesOnlyWhenForced) {
  const TempFolder folder;
  const std::string first = folder.write("a", "the first text"), second = folder.write("b", "another one");
  const std::string out = folder.file("o");
  ASSERT_EQ(tokenize(first + " --validation 0 --out " + out).status, 0);

  const Outcome refused = tokenize(second + " --validation 0 --out " + out);
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.text.find("--force"), std::string::npos) << refused.text;
  EXPECT_EQ(read_file(out + "/train.bin"), "the first text");

  EXPECT_EQ(tokenize(second + " --validation 0 --force --out " + out).status, 0);
  EXPECT_EQ(read_file(out + "/train.bin"), "another one");
  EXPECT_EQ(names_in(out), kWhole);
  EXPECT_EQ(open_token_directory(out)->tokens(Split::kTrain), 11);
}

TEST(Tokenize, MayReadTheFileThatItReplaces) {
  const TempFolder folder;
  const std::string out = folder.file("o"), own = folder.write("o/train.bin", "abcdefghij");

  ASSERT_EQ(tokenize(own + " --force --out " + out).status, 0);

  EXPECT_EQ(read_file(own), "abcdefghi");
  EXPECT_EQ(read_file(out + "/val.bin"), "j");
}

TEST(Tokenize, ExitsWith2AndWritesNothingOnAWrongCommandLine) {
  const TempFolder folder;
  const std::string good = folder.write("a", "some text"), empty = folder.write("empty", "");
  const std::string out = folder.file("o");
  const std::vector<std::pair<std::string, std::string>> cases{
      {good, "--out"},
      {"--out " + out, "TEXT"},
      {good + " --out", "--out"},
      {good + " --out " + out + " --vocabulary 3", "--vocabulary"},
      {good + " --out " + out + " --valid 0.5", "--valid"},
      {good + " --out " + out + " --validation 1", "--validation: 1: accepted: 0 or more, below 1"},
      {good + " --out " + out + " --validation=-0.1", "--validation: -0.1"},
      {good + " --out " + out + " --validation much", "--validation"},
      {good + " " + folder.file("none") + " --out " + out, folder.file("none") + ": No such file"},
      {good + " " + empty + " --out " + out, empty + ": the file is empty"},
      {folder.path() + " --out " + out, "not a regular file"},
      {good + " --out " + good, good},
  };
  for (const auto& [arguments, part] : cases) {
    const Outcome outcome = tokenize(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments << '\n' << outcome.text;
    EXPECT_NE(outcome.text.find(part), std::string::npos) << arguments << '\n' << outcome.text;
    EXPECT_FALSE(std::filesystem::exists(out)) << arguments;
  }
}

TEST(Tokenize, ExitsWith1AndLeavesNothingWhenADiskIsFull) {
  const TempFolder folder;
  const std::string text = folder.write("a", "some text"), out = folder.file("o");
  std::filesystem::create_directory(out);
  std::filesystem::create_symlink("/dev/full", out + "/.val.bin.partial");

  const Outcome outcome = tokenize(text + " --validation 0.5 --out " + out);

  EXPECT_EQ(outcome.status, 1) << outcome.text;
  EXPECT_NE(outcome.text.find("No space left on device"), std::string::npos) << outcome.text;
  EXPECT_TRUE(names_in(out).empty());
}

TEST(Tokenize, ExplainsItself) {
  const Outcome outcome = tokenize("--help");

  EXPECT_EQ(outcome.status, 0);
  for (const char* part :
       {"Usage: dew_tokenize TEXT... --out DIR", "--validation", "--force", "nothing between them"}) {
    EXPECT_NE(outcome.text.find(part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace dew
