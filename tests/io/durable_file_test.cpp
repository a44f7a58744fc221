#include "io/durable_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/check.h"

namespace dew {
namespace {

class DurableFile : public ::testing::Test {
 protected:
  DurableFile() : directory_(::testing::TempDir() + "/durable_XXXXXX") { mkdtemp(directory_.data()); }
  ~DurableFile() override { std::filesystem::remove_all(directory_); }

  static std::string text_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory_), {}));
  }
  template <class F>
  static std::string error_of(F&& f) {
    try {
      f();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  std::string directory_;
};

TEST_F(DurableFile, HoldsTheTextAndLeavesNothingElse) {
  const std::string path = directory_ + "/run.yaml";

  write_file_durably(path, "old");
  write_file_durably(path, std::string("new\0text", 8));

  EXPECT_EQ(text_of(path), std::string("new\0text", 8));
  EXPECT_EQ(files(), 1u);
}

TEST_F(DurableFile, StaysOldWhenTheSystemRefusesTheNewText) {
  const std::string path = directory_ + "/run.yaml";
  write_file_durably(path, "old");
  rlimit old_limit{};
  getrlimit(RLIMIT_FSIZE, &old_limit);
  rlimit limit = old_limit;
  limit.rlim_cur = 100;
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);

  setrlimit(RLIMIT_FSIZE, &limit);
  const std::string message = error_of([&] { write_file_durably(path, std::string(257, 'x')); });
  setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);

  EXPECT_NE(message.find("File too large"), std::string::npos) << message;
  EXPECT_NE(message.find("run.yaml"), std::string::npos) << message;
  EXPECT_EQ(text_of(path), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(DurableFile, CannotReplaceADirectory) {
  const std::string path = directory_ + "/run.yaml";
  std::filesystem::create_directory(path);

  const std::string message = error_of([&] { write_file_durably(path, "text"); });

  EXPECT_NE(message.find("Is a directory"), std::string::npos) << message;
  EXPECT_TRUE(std::filesystem::is_directory(path));
  EXPECT_EQ(files(), 1u);
}

TEST_F(DurableFile, NeedsItsDirectory) {
  const std::string message = error_of([&] { write_file_durably(directory_ + "/none/run.yaml", "text"); });

  EXPECT_NE(message.find("No such file or directory"), std::string::npos) << message;
}

TEST_F(DurableFile, MakesADirectoryWithItsParents) {
  make_writable_directory(directory_ + "/a/b", "run.dir");
  make_writable_directory(directory_ + "/a/b", "run.dir");

  EXPECT_TRUE(std::filesystem::is_empty(directory_ + "/a/b"));
}

TEST_F(DurableFile, NamesTheKeyOfADirectoryThatCannotBeMade) {
  write_file_durably(directory_ + "/file", "");

  const std::string message =
      error_of([&] { make_writable_directory(directory_ + "/file/below", "run.dir"); });

  EXPECT_EQ(message.find("run.dir: " + directory_ + "/file/below: "), 0u) << message;
  EXPECT_NE(message.find("Not a directory"), std::string::npos) << message;
  EXPECT_THROW(make_writable_directory(directory_ + "/file", "run.dir"), ConfigError);
}

TEST_F(DurableFile, SyncsFilesAndDirectoriesThatExist) {
  sync_path(directory_);

  EXPECT_NE(error_of([&] { sync_path(directory_ + "/none"); }).find("No such file"), std::string::npos);
}

TEST_F(DurableFile, TellsTheBytesAskedForAndTheBytesFree) {
  require_space(directory_, 1);

  const std::string message = error_of([&] { require_space(directory_, std::int64_t{1} << 60); });

  EXPECT_NE(message.find("1152921504606846976 bytes (1048576.0 TiB) are needed"), std::string::npos)
      << message;
  EXPECT_NE(message.find("are free: No space left on device"), std::string::npos) << message;
}

}  // namespace
}  // namespace dew
