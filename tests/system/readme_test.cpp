// The README's table of keys is the program's own.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "train/run_setup.h"

namespace dew {
namespace {

std::string table_of_readme() {
  std::ostringstream text;
  text << std::ifstream(DEW_SOURCE_DIR "/README.md").rdbuf();
  const std::string readme = text.str(), begin = "<!-- keys: dew_train --keys -->\n",
                    end = "<!-- end of keys -->";
  const std::size_t from = readme.find(begin), to = readme.find(end);
  if (from == std::string::npos || to == std::string::npos) return "";
  return readme.substr(from + begin.size(), to - from - begin.size());
}

TEST(Readme, HoldsTheTableOfEveryKey) {
  EXPECT_EQ(table_of_readme(), key_table()) << "paste the output of dew_train --keys";
}

}  // namespace
}  // namespace dew
