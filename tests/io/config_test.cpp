#include "io/config.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "io/config_cases.h"

namespace dew {
namespace {

using namespace config_cases;

Messages parse_errors(const std::string& text) {
  return errors_of([&] { parse(text); });
}

template <class F>
Messages read_errors(const std::string& text, F&& reads) {
  Config config = parse(text);
  reads(config.root());
  return errors_of([&] { config.throw_errors(); });
}

TEST(Config, ReadsEveryType) {
  Config config = parse(
      "i: 300\nr: 1e-3\nb: true\nt: a b\nc: cosine\nauto_i: auto\nnull_i:\nnull_r: ~\nbytes: 64 KiB\nsec: "
      "30m\n"
      "steps: 10\ndur: 2h\nlist: [a, \"b c\"]\none: a\nints: [1, 2]\nreals: [0.9, .95]\nrules: {x: [p, q], "
      "y: r}\n");
  ConfigSection root = config.root();
  constexpr std::array<std::string_view, 2> kKinds{"linear", "cosine"};

  EXPECT_EQ(root.integer({"i", "", ""}, 0), 300);
  EXPECT_EQ(root.real({"r", "", ""}, 0), 1e-3);
  EXPECT_TRUE(root.boolean({"b", "", ""}, false));
  EXPECT_EQ(root.text({"t", "", ""}, ""), "a b");
  EXPECT_EQ(root.choice({"c", "", ""}, "linear", kKinds), "cosine");
  EXPECT_EQ(root.integer_or({"auto_i", "", ""}, "auto", 5), std::nullopt);
  EXPECT_EQ(root.integer_or({"null_i", "", ""}, "null", 5), std::nullopt);
  EXPECT_EQ(root.real_or({"null_r", "", ""}, "null", 5.0), std::nullopt);
  EXPECT_EQ(root.bytes({"bytes", "", ""}, 0), 65536);
  EXPECT_EQ(root.seconds({"sec", "", ""}, 0), 1800);
  EXPECT_EQ(root.steps_or_seconds({"steps", "", ""}, 0).steps, 10);
  EXPECT_EQ(root.steps_or_seconds({"dur", "", ""}, 0).seconds, 7200);
  EXPECT_EQ(root.texts({"list", "", ""}, {}), (std::vector<std::string>{"a", "b c"}));
  EXPECT_EQ(root.texts({"one", "", ""}, {}), (std::vector<std::string>{"a"}));
  EXPECT_EQ(root.integers({"ints", "", ""}, {}), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(root.reals({"reals", "", ""}, {0, 0}, 2), (std::vector<double>{0.9, 0.95}));
  const auto rules = root.text_lists({"rules", "", ""});
  EXPECT_EQ(rules.at("x"), (std::vector<std::string>{"p", "q"}));
  EXPECT_EQ(rules.at("y"), (std::vector<std::string>{"r"}));
  EXPECT_NO_THROW(config.throw_errors());
}

TEST(Config, GivesDefaultsForWhatIsMissing) {
  Config config = parse("other: {}\n");
  ConfigSection root = config.root();

  EXPECT_EQ(root.section({"other", "", ""}).integer({"x", "", ""}, 7), 7);
  EXPECT_EQ(root.section({"absent", "", ""}).section({"deep", "", ""}).real({"x", "", ""}, 0.5), 0.5);
  EXPECT_TRUE(root.has("other"));
  EXPECT_FALSE(root.has("absent"));
  EXPECT_NO_THROW(config.throw_errors());
}

TEST(Config, RefusesEveryIntegerThatIsNotOne) {
  for (const char* text :
       {"1e3", "1.0", "0x10", "12abc", "1_000", "010", "\"3\"", "[3]", "{a: 3}", "", "~", "true",
        "9223372036854775808", "-9223372036854775809", "--3", "+-3", "1 2", "0o17"}) {
    const Messages errors = read_errors(std::string("a: 1\nn: ") + text + "\n", [](ConfigSection root) {
      root.integer({"a", "", ""}, 0);
      EXPECT_EQ(root.integer({"n", "", ""}, 42), 42);
    });

    ASSERT_EQ(errors.size(), 1u) << text;
    EXPECT_EQ(errors[0].find("n (line 2): "), 0u) << errors[0];
    EXPECT_NE(errors[0].find(": accepted: integer"), std::string::npos) << errors[0];
  }
}

TEST(Config, RefusesEveryRealThatIsNotFinite) {
  for (const char* text : {"nan", ".nan", "inf", "-inf", ".inf", "1e999", "1e-999", "0x1p3", "1e", "e3", ".",
                           "1.2.3", "1,5", "\"1\"", "+-1", "infinity"}) {
    const Messages errors = read_errors(std::string("x: ") + text + "\n", [](ConfigSection root) {
      EXPECT_EQ(root.real({"x", "", ""}, 0.25), 0.25);
    });

    ASSERT_EQ(errors.size(), 1u) << text;
    EXPECT_EQ(errors[0], std::string("x (line 1): ") + text + ": accepted: number");
  }
  for (const auto& [text, value] :
       {std::pair{"1e-3", 1e-3}, {".5", 0.5}, {"5.", 5.0}, {"-2", -2.0}, {"+1.5E+2", 150.0}}) {
    Config config = parse(std::string("x: ") + text);
    EXPECT_EQ(config.root().real({"x", "", ""}, 0), value) << text;
    EXPECT_NO_THROW(config.throw_errors()) << text;
  }
}

TEST(Config, RefusesOtherSpellingsOfBooleans) {
  for (const char* text : {"True", "yes", "on", "1", "\"true\"", "[true]"}) {
    const Messages errors = read_errors(std::string("b: ") + text, [](ConfigSection root) {
      EXPECT_FALSE(root.boolean({"b", "", ""}, false));
    });
    EXPECT_EQ(errors, Messages{std::string("b (line 1): ") + text + ": accepted: true or false"});
  }
}

TEST(Config, PrintsRangesInWords) {
  const Messages errors = read_errors("a: 0\nb: 11\nc: 1\nd: 0\ne: 2\nf: [0.5]\n", [](ConfigSection root) {
    root.integer({"a", "", ""}, 1, {.low = 1});
    root.integer({"b", "", ""}, 1, {.low = 0, .high = 10});
    root.real({"c", "", ""}, 0.5, {.low = 0, .high = 1, .low_open = true, .high_open = true});
    root.real_or({"d", "", ""}, "null", 1.0, {.low = 0, .low_open = true});
    root.real({"e", "", ""}, 0.5, {.low = 0, .high = 1});
    root.reals({"f", "", ""}, {0, 0}, 2, {.low = 0, .high = 1});
  });

  EXPECT_EQ(errors, (Messages{"a (line 1): 0: accepted: integer, 1 or more",
                              "b (line 2): 11: accepted: integer, 0 to 10",
                              "c (line 3): 1: accepted: number, above 0 and below 1",
                              "d (line 4): 0: accepted: number, above 0, or null",
                              "e (line 5): 2: accepted: number, 0 to 1",
                              "f (line 6): [0.5]: accepted: list of 2, each: number, 0 to 1"}));
}

TEST(Config, CollectsErrorsInTheOrderOfTheFile) {
  const Messages errors = read_errors("b: {y: no, zz: 1}\na: {x: 1.5}\ntop: 3\n", [](ConfigSection root) {
    root.section({"a", "", ""}).integer({"x", "", ""}, 0);
    root.section({"b", "", ""}).integer({"y", "", ""}, 0);
    root.section({"b", "", ""}).integer({"z", "", ""}, 0);
  });

  EXPECT_EQ(
      errors,
      (Messages{"b.y (line 1): no: accepted: integer", "b.zz (line 1): unknown key; did you mean b.z?",
                "a.x (line 2): 1.5: accepted: integer", "top (line 3): unknown key; accepted here: a, b"}));
}

TEST(Config, NamesTheNearestKeyOfAnUnknownOne) {
  const auto reads = [](ConfigSection root) {
    ConfigSection data = root.section({"data", "", ""});
    data.integer({"batch", "", ""}, 1);
    data.integer({"seq_len", "", ""}, 1);
    root.section({"mesh", "", ""}).integer({"tensor", "", ""}, 1);
  };

  EXPECT_EQ(read_errors("mesh: {tensr: 1}", reads),
            Messages{"mesh.tensr (line 1): unknown key; did you mean mesh.tensor?"});
  EXPECT_EQ(read_errors("batch: 1", reads),
            Messages{"batch (line 1): unknown key; did you mean data.batch?"});
  EXPECT_EQ(read_errors("mesh: {seqlen: 1}", reads),
            Messages{"mesh.seqlen (line 1): unknown key; did you mean data.seq_len?"});
  EXPECT_EQ(read_errors("dat: {batch: x}", reads), Messages{"dat (line 1): unknown key; did you mean data?"});
  EXPECT_EQ(read_errors("mesh:\n  qwertyuiop: {a: 1}", reads),
            Messages{"mesh.qwertyuiop (line 2): unknown key; accepted here: tensor"});
}

TEST(Config, RefusesDuplicateKeys) {
  EXPECT_EQ(parse_errors("a: 1\nb: {c: 1,\n  c: 2}\na: 3\n"),
            (Messages{"b.c (line 3): duplicate key, first given on line 2",
                      "a (line 4): duplicate key, first given on line 1"}));
  EXPECT_EQ(parse_errors("l: [{x: 1, x: 2}]\n"),
            Messages{"l.x (line 1): duplicate key, first given on line 1"});
}

TEST(Config, RefusesWhatIsNoRunDescription) {
  const std::string deep(100000, '[');
  std::string nested_map;
  for (int i = 0; i < 40; ++i) nested_map += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "run.yaml: the file is empty"},
      {"# only a comment\n", "run.yaml: the file is empty"},
      {"- 1\n- 2\n", "run.yaml (line 1): [1, 2]: accepted: a mapping"},
      {"words", "run.yaml (line 1): words: accepted: a mapping"},
      {"a: 1\n---\nb: 2\n", "run.yaml (line 2): a second document"},
      {"a: [1, 2\nb: 3\n", "run.yaml (line 2): not YAML: "},
      {"a:\n\tb: 1\n", "run.yaml (line 2): not YAML: "},
      {"a: &x 1\nb: *x\n", "run.yaml (line 1): anchors"},
      {"a: *x\n", "run.yaml (line 1): not YAML: "},
      {"<<: {a: &b 1}\n", "run.yaml (line 1): anchors"},
      {"a: !!int 3\n", "run.yaml (line 1): the tag"},
      {"a: !mine {}\n", "run.yaml (line 1): the tag"},
      {"? [1, 2]\n: 3\n", "run.yaml (line 1): a list or mapping stands where a key"},
      {": 3\n", "run.yaml (line 1): a key is missing"},
      {"\"\": 3\n", "run.yaml (line 1): a key is empty"},
      {"a: 1\nb: " + deep, "run.yaml (line 2): "},
      {"a: 1\nb: " + std::string(40, '[') + std::string(40, ']'), "run.yaml (line 2): nested deeper than"},
      {"b: " + std::string(50000, '{'), "run.yaml (line 1): "},
      {nested_map, "run.yaml (line 17): nested deeper than"},
      {std::string(50000, '?'), "run.yaml (line 1): "},
      {std::string("a: 1\nb: \0c", 9), "run.yaml (line 2): byte 0 is not text"},
      {"a: \xff\xfe", "run.yaml (line 1): byte 255 is not text"},
      {"a: \xed\xa0\x80", "run.yaml (line 1): byte 237 is not text"},
      {"a: \xc3", "run.yaml (line 1): byte 195 is not text"},
      {std::string((std::size_t{1} << 20) + 1, 'a'), "run.yaml: more than 1 MiB"},
  };
  for (const auto& [text, message] : cases) {
    const Messages errors = parse_errors(text);
    ASSERT_EQ(errors.size(), 1u) << text.substr(0, 40);
    EXPECT_EQ(errors[0].find(message), 0u) << errors[0] << "\nfor " << text.substr(0, 40);
  }
}

TEST(Config, ReportsASectionThatIsNoMapping) {
  const Messages errors = read_errors("a: 3\nb: [1]\nc:\n", [](ConfigSection root) {
    EXPECT_EQ(root.section({"a", "", ""}).integer({"x", "", ""}, 9), 9);
    root.section({"b", "", ""}).integer({"x", "", ""}, 9);
    root.section({"c", "", ""}).integer({"x", "", ""}, 9);
  });

  EXPECT_EQ(errors, (Messages{"a (line 1): 3: accepted: a mapping of keys",
                              "b (line 2): [1]: accepted: a mapping of keys"}));
}

TEST(Config, KeepsOneRowForAKeyReadTwice) {
  Config config = parse("x: 3\n");
  config.root().integer({"x", "steps", "first"}, 1);
  config.root().integer({"x", "steps", "second"}, 1);

  const std::vector<KeyRow> rows = config.table();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].meaning, "first");
  EXPECT_EQ(config.resolved(), "x: 3\n");
}

TEST(Config, NotesErrorsWithPlaceAndValue) {
  Config config = parse("a: {x: 3}\nunread: [1]\n");
  ConfigSection root = config.root(), a = root.section({"a", "", ""});
  a.integer({"x", "", ""}, 1);
  a.integer({"y", "", ""}, 8);
  a.error("x", "odd");
  a.error("y", "even");
  root.error("unread", "refused");
  root.error("missing", "required");
  root.error("a", "does not fit");

  EXPECT_EQ(errors_of([&] { config.throw_errors(); }),
            (Messages{"a.y (default): 8: even", "a (line 1): does not fit", "a.x (line 1): 3: odd",
                      "unread (line 2): [1]: refused", "missing: required"}));
}

TEST(Config, TellsTheFirstHundredOfVeryManyErrorsInTime) {
  std::string text;
  for (int i = 0; i < 60'000; ++i) text += "k" + std::to_string(i) + ": 1\n";
  const Messages errors = read_errors(text, [](ConfigSection root) {
    for (int i = 0; i < 60'000; ++i) root.error("x", std::to_string(i));
  });
  ASSERT_EQ(errors.size(), 101u);
  EXPECT_NE(errors[0].find("k0 (line 1): unknown key"), std::string::npos) << errors[0];
  EXPECT_EQ(errors[100], "and 119900 more errors");
}

TEST(Config, ShortensLongValuesInMessages) {
  const Messages errors = read_errors("x: \"" + std::string(5000, 'y') + "\\n\"\n", [](ConfigSection root) {
    root.integer({"x", "", ""}, 1);
  });
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_LT(errors[0].size(), 150u);
}

}  // namespace
}  // namespace dew
