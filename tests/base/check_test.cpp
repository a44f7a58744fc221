#include "base/check.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace dew {
namespace {

/// The message of the Error that `body` throws, or "" when it throws none.
template <class Body>
std::string message_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Check, PassesInSilenceAndEvaluatesTheConditionOnce) {
  int calls = 0;

  EXPECT_NO_THROW(DEW_CHECK(++calls == 1, calls));

  EXPECT_EQ(calls, 1);
}

TEST(Check, NamesConditionFileAndValues) {
  const int rows = 33, limit = 7;

  const std::string message = message_of([&] { DEW_CHECK(rows < limit, rows, limit, "words"); });

  EXPECT_NE(message.find("rows < limit"), std::string::npos) << message;
  EXPECT_NE(message.find("check_test.cpp:"), std::string::npos) << message;
  EXPECT_NE(message.find("33 7 words"), std::string::npos) << message;
  EXPECT_EQ(message.find('/'), std::string::npos) << "a path of the build machine in: " << message;
}

TEST(Check, NeedsNoValues) {
  const std::string message = message_of([] { DEW_CHECK(false); });

  EXPECT_NE(message.find("check failed: false at check_test.cpp:"), std::string::npos) << message;
  EXPECT_EQ(message.find("values"), std::string::npos) << message;
}

TEST(Check, EvaluatesValuesOnlyOnFailure) {
  int evaluated = 0;
  const auto value = [&] { return ++evaluated; };

  DEW_CHECK(true, value());

  EXPECT_EQ(evaluated, 0);
}

TEST(ConfigError, CarriesEveryMessageAndPrintsThemAsLines) {
  const ConfigError error(std::vector<std::string>{"run.steps: -1", "mesh.fsdp: 0"});

  EXPECT_EQ(error.messages(), (std::vector<std::string>{"run.steps: -1", "mesh.fsdp: 0"}));
  EXPECT_STREQ(error.what(), "run.steps: -1\nmesh.fsdp: 0");
}

TEST(ConfigError, TakesOneMessage) {
  const ConfigError error("run.dir: missing");

  ASSERT_EQ(error.messages().size(), 1u);
  EXPECT_STREQ(error.what(), "run.dir: missing");
}

TEST(Errors, AreToldApartByType) {
  EXPECT_THROW(throw SharedError("same on all ranks"), Error);
  EXPECT_THROW(throw ConfigError("the user's"), Error);
  EXPECT_THROW(DEW_CHECK(false), Error);
  EXPECT_FALSE((std::is_base_of_v<SharedError, ConfigError>));
}

}  // namespace
}  // namespace dew
