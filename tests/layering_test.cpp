// The rules of the house, on the project's own files; and for each rule a planted violation that it finds.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "support/source_rules.h"

namespace dew::test {
namespace {

constexpr int kLongestFile = 400;
constexpr int kLongestReadme = 60;

SourceTree read_project() {
  namespace fs = std::filesystem;
  const fs::path root = DEW_SOURCE_DIR;
  SourceTree tree;
  for (const char* folder : {"lib", "apps", "tests", "benchmarks"})
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
      std::string path = fs::relative(entry.path(), root).generic_string();
      if (path.ends_with(".h.in")) path.resize(path.size() - 3);  // the build makes a header of it
      if (!entry.is_regular_file() ||
          !(path.ends_with(".h") || path.ends_with(".cpp") || path.ends_with(".md")))
        continue;
      std::ifstream file(entry.path(), std::ios::binary);
      tree[path] = std::string(std::istreambuf_iterator<char>(file), {});
    }
  return tree;
}

const SourceTree& project() {
  static const SourceTree kTree = read_project();
  return kTree;
}

void expect_none(const Violations& violations) {
  for (const std::string& violation : violations) ADD_FAILURE() << violation;
}

TEST(Project, IsRead) {
  EXPECT_GT(project().size(), 50u);
  EXPECT_TRUE(project().contains("lib/tensor/tensor.h"));
}
TEST(Project, KeepsItsLayers) {
  expect_none(layer_violations(project()));
}
TEST(Project, KeepsLibrariesInTheirFolders) {
  expect_none(third_party_violations(project()));
}
TEST(Project, HasNoIncludeCycle) {
  expect_none(cycle_violations(project()));
}
TEST(Project, GuardsItsHeaders) {
  expect_none(guard_violations(project()));
}
TEST(Project, HasShortFiles) {
  expect_none(length_violations(project(), kLongestFile));
}
TEST(Project, CapturesByName) {
  expect_none(capture_violations(project()));
}
TEST(Project, CatchesInMainOnly) {
  expect_none(catch_violations(project()));
}
TEST(Project, HasNoNotesToOneself) {
  expect_none(note_violations(project()));
}
TEST(Project, SaysTheDecisionsOfEachFolder) {
  expect_none(readme_violations(project(), kLongestReadme));
}
TEST(Project, TestsMirrorTheFolders) {
  expect_none(mirror_violations(project()));
}

/// A file of the tree, and the number of violations a rule finds with it.
SourceTree with(const std::string& path, const std::string& text) {
  return {{"lib/base/check.h", "#pragma once\n"},
          {"lib/tensor/tensor.h", "#pragma once\n#include \"base/check.h\"\n"},
          {"lib/autograd/tape.h", "#pragma once\n#include \"tensor/tensor.h\"\n"},
          {"lib/io/config.h", "#pragma once\n"},
          {path, text}};
}

TEST(LayerRule, FindsHigherEqualAndUnknownFolders) {
  const auto count = [](const std::string& path, const std::string& text) {
    return layer_violations(with(path, text)).size();
  };

  EXPECT_EQ(count("lib/train/x.cpp", "#include \"autograd/tape.h\"\n#include <vector>\n"), 0u);
  EXPECT_EQ(count("lib/base/x.cpp", "#include \"tensor/tensor.h\"\n"), 1u);
  EXPECT_EQ(count("lib/io/x.cpp", "#include \"autograd/tape.h\"\n"), 1u) << "siblings do not see each other";
  EXPECT_EQ(count("lib/autograd/x.cpp", "#include \"io/config.h\"\n"), 1u);
  EXPECT_EQ(count("lib/tensor/x.cpp", "  #  include \"tensor.h\"\n"), 1u) << "only by folder/file.h";
  EXPECT_EQ(count("lib/misc/x.cpp", "\n"), 1u);
  EXPECT_EQ(layer_violations(with("lib/base/x.cpp", "\n\n#include \"io/config.h\"\n")).front(),
            "lib/base/x.cpp:3: base may not include io");
}

TEST(ThirdPartyRule, FindsHeadersOutsideTheirFolder) {
  const auto count = [](const std::string& path, const std::string& header) {
    return third_party_violations(with(path, "#include <" + header + ">\n")).size();
  };

  EXPECT_EQ(count("lib/comm/x.cpp", "mpi.h"), 0u);
  EXPECT_EQ(count("lib/comm/x.h", "mpi.h"), 1u) << "in .cpp only";
  EXPECT_EQ(count("lib/io/x.cpp", "mpi.h"), 1u);
  EXPECT_EQ(count("lib/io/x.cpp", "yaml-cpp/yaml.h"), 0u);
  EXPECT_EQ(count("lib/io/x.h", "hdf5.h"), 1u);
  EXPECT_EQ(count("lib/model/x.cpp", "nlohmann/json.hpp"), 1u);
  EXPECT_EQ(count("lib/kernels/cpu/x.cpp", "oneapi/dnnl/dnnl.hpp"), 0u);
  EXPECT_EQ(count("lib/kernels/x.cpp", "omp.h"), 1u);
  EXPECT_EQ(count("lib/train/x.cpp", "boost/program_options.hpp"), 1u);
  EXPECT_EQ(count("apps/x.cpp", "boost/program_options.hpp"), 0u);
  EXPECT_EQ(count("lib/base/x.cpp", "gtest/gtest.h"), 1u);
  EXPECT_EQ(count("lib/base/x.cpp", "fmt/format.h"), 1u) << "a library that is not in the table";
  EXPECT_EQ(count("lib/base/x.cpp", "sys/mman.h"), 0u);
  EXPECT_EQ(third_party_violations(with("lib/io/x.cpp", "#include \"mpi.h\"\n")).size(), 1u)
      << "quoted as well";
}

TEST(CycleRule, FindsARingOfThree) {
  SourceTree tree = with("lib/base/a.h", "#include \"base/b.h\"\n");
  tree["lib/base/b.h"] = "#include \"base/c.h\"\n";
  EXPECT_EQ(cycle_violations(tree).size(), 0u);

  tree["lib/base/c.h"] = "#include \"base/a.h\"\n";
  EXPECT_EQ(cycle_violations(tree),
            Violations{"lib/base/a.h -> lib/base/b.h -> lib/base/c.h -> lib/base/a.h"});
}

TEST(GuardRule, WantsPragmaOnceBeforeAnyCode) {
  EXPECT_EQ(
      guard_violations(with("lib/base/x.h", "// Owns x.\n\n/* and y */\n#pragma once\nint x;\n")).size(), 0u);
  EXPECT_EQ(guard_violations(with("lib/base/x.h", "#include <array>\n#pragma once\n")).size(), 1u);
  EXPECT_EQ(guard_violations(with("lib/base/x.h", "// #pragma once\nint x;\n")).size(), 1u);
  EXPECT_EQ(guard_violations(with("lib/base/x.h", "")).size(), 1u);
}

TEST(LengthRule, CountsLines) {
  const std::string lines(kLongestFile, '\n');

  EXPECT_EQ(length_violations(with("tests/x_test.cpp", lines), kLongestFile).size(), 0u);
  EXPECT_EQ(length_violations(with("tests/x_test.cpp", lines + "x"), kLongestFile).size(), 1u);
}

TEST(CaptureRule, FindsDefaultCapturesInOps) {
  const auto count = [](const std::string& code) {
    return capture_violations(with("lib/autograd/x.cpp", code + "\n")).size();
  };

  EXPECT_EQ(count("tape.record([x, y = z](auto& g) { return g[0]; });"), 0u);
  EXPECT_EQ(count("tape.record([&x] {});  // not [&]"), 0u);
  EXPECT_EQ(count("tape.record([&] {});"), 1u);
  EXPECT_EQ(count("tape.record([=] {});"), 1u);
  EXPECT_EQ(count("tape.record([ &, x] {});"), 1u);
  EXPECT_EQ(count("tape.record([=, &x] {});"), 1u);
  EXPECT_EQ(capture_violations(with("lib/train/x.cpp", "f([&] {});")).size(), 0u)
      << "only ops outlive their scope";
}

TEST(CatchRule, FindsHandlersInLib) {
  EXPECT_EQ(catch_violations(with("lib/io/x.cpp", "try { f(); } catch (...) {}\n")).size(), 1u);
  EXPECT_EQ(
      catch_violations(with("lib/io/x.cpp", "} catch (...) {  // boundary: HDF5 calls back from C\n")).size(),
      0u);
  EXPECT_EQ(catch_violations(with("lib/io/x.cpp", "// nothing to catch (here)\n")).size(), 0u);
  EXPECT_EQ(catch_violations(with("apps/x.cpp", "} catch (...) {\n")).size(), 0u);
}

TEST(NoteRule, FindsNotesInCommentsToo) {
  EXPECT_EQ(note_violations(with("lib/io/x.cpp", std::string("int x;  // TO") + "DO: more\n")).size(), 1u);
  EXPECT_EQ(note_violations(with("lib/io/README.md", std::string("FIX") + "ME\n")).size(), 1u);
}

TEST(ReadmeRule, WantsOneShortPageAFolder) {
  const std::size_t folders = readme_violations({}, kLongestReadme).size();

  EXPECT_EQ(folders, 8u);
  EXPECT_EQ(readme_violations({{"lib/io/README.md", "short\n"}}, kLongestReadme).size(), folders - 1);
  EXPECT_EQ(readme_violations({{"lib/io/README.md", std::string(61, '\n')}}, kLongestReadme).size(), folders);
}

TEST(MirrorRule, WantsTestsForEachFolderAndNoOthers) {
  EXPECT_EQ(mirror_violations({}).size(), 8u);
  EXPECT_EQ(mirror_violations({{"tests/io/a_test.cpp", ""}, {"tests/support/main.cpp", ""}}).size(), 7u);
  EXPECT_EQ(mirror_violations({{"tests/misc/a_test.cpp", ""}}).size(), 9u);
}

TEST(CodeOf, BlanksCommentsAndTextAndKeepsLines) {
  EXPECT_EQ(code_of("a; // b\nc /* d\ne */ f"), "a;     \nc     \n     f");
  EXPECT_EQ(code_of("f(\"x\\\"y\", 'z', 1'000);"), "f(      ,    , 1'000);");
  EXPECT_EQ(code_of("R\"(a \" b)\"; c"), "R         ; c");
}

}  // namespace
}  // namespace dew::test
