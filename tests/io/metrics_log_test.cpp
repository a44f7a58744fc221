#include "io/metrics_log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "base/check.h"
#include "io/temp_folder.h"

namespace dew {
namespace {

using Json = nlohmann::json;

std::vector<Json> lines_of(const std::string& path) {
  std::vector<Json> lines;
  std::istringstream in(read_file(path));
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

void write_step(MetricsLog& log, std::int64_t step, double loss) {
  log.write(std::vector<JsonField>{{"step", step}, {"loss", loss}});
}

TEST(MetricsLog, WritesNumbersThatReadBackToTheSameBits) {
  const TempFolder folder;
  const std::string path = folder.file("metrics.jsonl");
  const std::vector<double> reals{
      0.1, 1.0 / 3, -0.0, 5e-324, std::numeric_limits<double>::max(), 1e22, 4, 2.0000000000000004};
  MetricsLog log(path, -1);
  for (const double real : reals) write_step(log, std::numeric_limits<std::int64_t>::max(), real);

  const std::vector<Json> lines = lines_of(path);

  ASSERT_EQ(lines.size(), reals.size());
  for (std::size_t i = 0; i < reals.size(); ++i) {
    EXPECT_EQ(lines[i].at("loss").get<double>(), reals[i]);
    EXPECT_EQ(lines[i].at("step").get<std::int64_t>(), std::numeric_limits<std::int64_t>::max());
  }
}

TEST(MetricsLog, WritesNullForWhatIsNotFinite) {
  const TempFolder folder;
  MetricsLog log(folder.file("m"), -1);
  for (const double real :
       {std::nan(""), std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    write_step(log, 1, real);
  }

  for (const Json& line : lines_of(folder.file("m"))) EXPECT_TRUE(line.at("loss").is_null());
}

TEST(MetricsLog, EscapesText) {
  const TempFolder folder;
  const std::string text = "a \"quoted\" \\ back\n\ttab \x01 é";
  MetricsLog log(folder.file("m"), -1);
  log.write(std::vector<JsonField>{{"run \"1\"", text}, {"broken", std::string("\xFF!")}});

  const std::vector<Json> lines = lines_of(folder.file("m"));

  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].at("run \"1\"").get<std::string>(), text);
  EXPECT_EQ(lines[0].at("broken").get<std::string>(), "\xEF\xBF\xBD!")
      << "a byte that is not UTF-8 is replaced";
}

TEST(MetricsLog, ShowsEachLineAtOnce) {
  const TempFolder folder;
  MetricsLog log(folder.file("m"), -1);
  write_step(log, 1, 0.5);

  EXPECT_EQ(read_file(folder.file("m")), "{\"step\": 1, \"loss\": 0.5}\n");
}

TEST(MetricsLog, DropsLinesBeyondTheRestoredStepAndGoesOn) {
  const TempFolder folder;
  const std::string path =
      folder.write("m",
                   "{\"run\": \"first\"}\n{\"step\": 10, \"loss\": 3}\n{\"step\": 20, \"loss\": 2}\n"
                   "{\"step\": 20, \"val_loss\": 2.5}\n{\"step\": 21, \"loss\": 1}\n{\"step\": 30, \"lo");
  {
    MetricsLog log(path, 20);
    write_step(log, 21, 0.25);
  }

  EXPECT_EQ(read_file(path),
            "{\"run\": \"first\"}\n{\"step\": 10, \"loss\": 3}\n{\"step\": 20, \"loss\": 2}\n"
            "{\"step\": 20, \"val_loss\": 2.5}\n{\"step\": 21, \"loss\": 0.25}\n");
}

TEST(MetricsLog, KeepsHeadsAndStepZeroWhenThatWasRestored) {
  const TempFolder folder;
  const std::string kept = "{\"run\": \"first\"}\n{\"step\": 0, \"val_loss\": 5.5}\n";
  const std::string path = folder.write("m", kept + "{\"step\": 1, \"loss\": 3}\n");

  const MetricsLog log(path, 0);

  EXPECT_EQ(read_file(path), kept);
  EXPECT_EQ(log.last_evaluation(), 0);
}

TEST(MetricsLog, TellsTheLastEvaluationOfTheLinesThatItKeeps) {
  const TempFolder folder;
  const std::string text =
      "{\"val_loss\": 9}\n{\"step\": 30, \"val_loss\": 2}\n{\"step\": 20, \"val_loss\": null}\n"
      "{\"step\": 33, \"loss\": 2}\n{\"step\": 257, \"val_loss\": 1}\n";
  const auto last = [&](std::int64_t step) {
    return MetricsLog(folder.write("m", text), step).last_evaluation();
  };

  EXPECT_EQ(last(300), 257);
  EXPECT_EQ(last(256), 30);
  EXPECT_EQ(last(29), 20);
  EXPECT_EQ(last(19), -1);
  EXPECT_EQ(last(-1), -1);
  EXPECT_EQ(MetricsLog(folder.file("missing"), 5).last_evaluation(), -1);
}

TEST(MetricsLog, DropsATornLastLineEvenIfItReadsAsJson) {
  const TempFolder folder;
  const std::string path = folder.write("m", "{\"step\": 1, \"loss\": 3}\n{\"step\": 2, \"loss\": 3}");
  MetricsLog log(path, 5);
  write_step(log, 2, 4);

  EXPECT_EQ(read_file(path), "{\"step\": 1, \"loss\": 3}\n{\"step\": 2, \"loss\": 4}\n");
}

TEST(MetricsLog, StartsEmptyWithoutARestoredStep) {
  const TempFolder folder;
  const std::string path = folder.write("m", "{\"step\": 1}\n");
  { const MetricsLog log(path, -1); }
  EXPECT_EQ(read_file(path), "");

  const MetricsLog missing(folder.file("other"), 7);
  EXPECT_EQ(read_file(folder.file("other")), "");
}

TEST(MetricsLog, KeepsAFileThatItCannotRead) {
  const TempFolder folder;
  const std::string text = "{\"step\": 1}\nnot json\n{\"step\": 2}\n";
  const std::string path = folder.write("m", text);

  const std::string message = message_of<Error>([&] { MetricsLog(path, 5); });

  EXPECT_EQ(message, path + ": line 2 is no JSON object; repair the file or move it away to go on");
  EXPECT_EQ(read_file(path), text);
}

TEST(MetricsLog, SaysWhyAFileCannotBeWritten) {
  const TempFolder folder;
  EXPECT_NE(message_of<Error>([&] { MetricsLog(folder.file("none/m"), -1); }).find("No such file"),
            std::string::npos);
}

}  // namespace
}  // namespace dew
