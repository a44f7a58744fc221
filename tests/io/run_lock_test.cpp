#include "io/run_lock.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/check.h"
#include "io/temp_folder.h"

namespace dew {
namespace {

TEST(RunLock, IsHeldByOneAtATimeAndNamesTheHolder) {
  const TempFolder folder;
  auto first = std::make_unique<RunLock>(folder.path());
  try {
    const RunLock second(folder.path());
    FAIL() << "two runs hold the folder";
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("run.dir: " + folder.path() + " is in use by another run on host "),
              std::string::npos)
        << text;
  }
  first.reset();
  EXPECT_NO_THROW(RunLock(folder.path()));
}

TEST(RunLock, RefusesAFolderThatIsNotThere) {
  const TempFolder folder;
  EXPECT_THROW(RunLock(folder.path() + "/none"), ConfigError);
}

}  // namespace
}  // namespace dew
