// Every description in configs/ runs on the ranks that its `# ranks: N` line names, and agrees with one rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "system/run_folder.h"

namespace dew::testing {
namespace {

std::vector<std::string> descriptions() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(DEW_SOURCE_DIR "/configs"))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// The N of a line `# ranks: N` among the first lines; 0 where there is none.
int ranks_of(const std::string& text) {
  std::istringstream lines(text);
  const std::string key = "# ranks: ";
  for (std::string line; std::getline(lines, line) && line.starts_with('#');)
    if (line.starts_with(key)) return std::stoi(line.substr(key.size()));
  return 0;
}

TEST(Configs, AreThere) {
  EXPECT_GE(descriptions().size(), 10u);
}

TEST(Configs, EachRunsTwoStepsOnItsRanksAndAgreesWithOneRank) {
  for (const std::string& file : descriptions()) {
    SCOPED_TRACE(file);
    const std::string description = read_file(file);
    const int ranks = ranks_of(description);
    EXPECT_GE(ranks, 1) << "a line `# ranks: N` among the first lines says how many ranks it is for";
    if (ranks < 1) continue;
    const RunFolder run;
    Launch launch;
    launch.ranks = ranks;
    launch.arguments = {file,          "--set", "run.dir=" + run.dir(), "--set",
                        "run.steps=2", "--set", "schedule.warmup=1",    "--set",
                        "log.every=1"};
    if (description.find("text:") != std::string::npos) {
      std::string text;
      while (text.size() < 200'000)
        text += "some words that are no sentence of anyone, " + std::to_string(text.size());
      launch.arguments.insert(launch.arguments.end(),
                              {"--set", "data.text=" + run.folder().write("text", text)});
    }
    const Outcome outcome = train(launch);
    EXPECT_EQ(outcome.status, 0) << outcome.text();
    EXPECT_EQ(run.losses().size(), 2u);
    EXPECT_TRUE(std::filesystem::exists(run.checkpoint(2)));
    launch.arguments.emplace_back("--verify");
    const Outcome verified = train(launch);
    EXPECT_EQ(verified.status, 0) << verified.text();
  }
}

}  // namespace
}  // namespace dew::testing
