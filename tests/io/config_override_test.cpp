// `--set`, short forms of sections, and the resolved file and table that come out.
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "io/config.h"
#include "io/config_cases.h"
#include "io/config_table.h"

namespace dew {
namespace {

using namespace config_cases;

TEST(Config, OverridesWithTheSameChecks) {
  Config config = parse("a: {x: 1, y: 2}\nlist: [1, 2]\n");
  config.set("a.x=5");
  config.set("b.deep.z=[p,q]");
  config.set("list.1=7");
  config.set("a.w=null");
  config.set("a.bad=1.5");
  ConfigSection root = config.root();
  ConfigSection a = root.section({"a", "", ""});

  EXPECT_EQ(a.integer({"x", "", ""}, 0), 5);
  EXPECT_EQ(a.integer({"y", "", ""}, 0), 2);
  EXPECT_EQ(a.integer_or({"w", "", ""}, "null", 3), std::nullopt);
  EXPECT_EQ(root.section({"b", "", ""}).section({"deep", "", ""}).texts({"z", "", ""}, {}),
            (std::vector<std::string>{"p", "q"}));
  EXPECT_EQ(root.integers({"list", "", ""}, {}), (std::vector<std::int64_t>{1, 7}));
  a.integer({"bad", "", ""}, 0);
  config.set("qwerty=1");
  EXPECT_EQ(errors_of([&] { config.throw_errors(); }),
            (Messages{"a.bad (--set): 1.5: accepted: integer",
                      "qwerty (--set): unknown key; accepted here: a, b, list"}));
}

TEST(Config, ReplacesASectionThatIsSetWhole) {
  Config config = parse("mesh: {fsdp: 2, replica: 3}\n");
  config.set("mesh={fsdp: 4}");
  ConfigSection mesh = config.root().section({"mesh", "", ""});

  EXPECT_EQ(mesh.integer({"fsdp", "", ""}, 1), 4);
  EXPECT_EQ(mesh.integer({"replica", "", ""}, 1), 1);
}

TEST(Config, RefusesMalformedOverrides) {
  Config config = parse("a: {x: [1, 2]}\n");
  for (const char* text :
       {"", "a", "=3", "a..x=3", ".a=3", "a.=3", "a x=3", "a={b: 1", "a=[1", "a={x: 1, x: 2}", "a.x.2=1",
        "a.x.-1=1", "a=1\n---\n2", "a=\x01", "a=*x", "a=\"\\u"}) {
    const Messages errors = errors_of([&] { config.set(text); });

    ASSERT_EQ(errors.size(), 1u) << text;
    EXPECT_EQ(errors[0].find("--set "), 0u) << errors[0];
  }
}

TEST(Config, TakesTheShortFormOfASection) {
  const auto reads = [](ConfigSection root) {
    ConfigSection s = root.section({"device", "", ""}, "kind");
    const std::string kind = s.text({"kind", "", ""}, "auto");
    return kind + format_exact(s.real({"peak", "", ""}, 0));
  };
  Config short_form = parse("device: cpu\n"), long_form = parse("device: {kind: cpu, peak: 2}\n"),
         mixed = parse("device: cpu\n"), overridden = parse("device: cpu\n"), absent = parse("{}"),
         wrong = parse("device: [cpu]\n");
  mixed.set("device.peak=2");
  overridden.set("device.kind=cuda");

  EXPECT_EQ(reads(short_form.root()), "cpu0");
  EXPECT_EQ(reads(long_form.root()), "cpu2");
  EXPECT_EQ(reads(mixed.root()), "cpu2");
  EXPECT_EQ(reads(overridden.root()), "cuda0");
  EXPECT_EQ(reads(absent.root()), "auto0");
  reads(wrong.root());
  EXPECT_EQ(errors_of([&] { wrong.throw_errors(); }),
            Messages{"device.kind (line 1): [cpu]: accepted: text"});
  EXPECT_EQ(short_form.resolved(), "device:\n  kind: cpu\n  peak: 0\n");
  EXPECT_NO_THROW(mixed.throw_errors());
}

TEST(Config, KeepsAnOverrideBelowAValueThatIsNoSection) {
  Config config = parse("mesh: 3\n");
  config.set("mesh.fsdp=4");
  config.root().section({"mesh", "", ""}).integer({"fsdp", "", ""}, 1);

  EXPECT_EQ(errors_of([&] { config.throw_errors(); }),
            Messages{"mesh (line 1): 3: accepted: a mapping of keys"});
}

std::string read_all(Config& config) {
  ConfigSection root = config.root();
  ConfigSection a = root.section({"a", "", ""});
  a.real({"third", "", ""}, 1.0 / 3);
  a.real({"tiny", "", ""}, 5e-324);
  root.integer({"low", "", ""}, std::numeric_limits<std::int64_t>::min());
  a.text({"name", "", ""}, "x");
  a.text({"odd", "", ""}, "a: b # \"c\" \\ \xc3\xa9 ' - [");
  a.text({"word", "", ""}, "null");
  a.text({"number", "", ""}, "007");
  a.texts({"list", "", ""}, {"", "true", "~", "a,b", "p/q.txt"});
  a.section({"deep", "", ""}).boolean({"flag", "", ""}, true);
  root.section({"empty", "", ""});
  root.bytes({"bytes", "", ""}, 1536);
  root.seconds({"seconds", "", ""}, 0.1);
  root.steps_or_seconds({"every", "", ""}, 5);
  root.integer_or({"window", "", ""}, "null", std::nullopt);
  root.real_or({"peak", "", ""}, "auto", 2.5e11);
  root.text_or({"none", "", ""}, "null", std::nullopt);
  root.text_or({"some", "", ""}, "null", "Null");
  root.integers({"ints", "", ""}, {1, -2});
  root.reals({"reals", "", ""}, {0.9, 1e-8}, 2);
  root.text_lists({"rules", "", ""});
  root.word_or_texts({"sites", "", ""}, "none", "words");
  config.throw_errors();
  return config.resolved();
}

TEST(Config, ResolvedReadsBackToTheSameValues) {
  for (const char* text :
       {"{}",
        "a: {third: 0.1, odd: \"\\\"q\\\"\"}\nempty: {}\nevery: 90s\nbytes: 2KiB\nnone: x\n"
        "rules: {\"odd key: #\": [a, \"b c\"], plain: []}\nsites: [one]\nwindow: 3\n"}) {
    Config first = parse(text);
    const std::string resolved = read_all(first);
    Config second = parse(resolved);

    EXPECT_EQ(read_all(second), resolved);
  }
  Config config = parse("a: {odd: z}\n");
  const std::string resolved = read_all(config);
  EXPECT_EQ(resolved.substr(0, resolved.find("  name")), "a:\n  third: 0.3333333333333333\n  tiny: 5e-324\n");
  EXPECT_NE(resolved.find("  odd: z\n  word: \"null\"\n  number: \"007\"\n"), std::string::npos) << resolved;
}

TEST(ConfigTable, EscapesBarsAndMarksCode) {
  const std::vector<KeyRow> rows{{"run.steps", "integer, 0 or more", "steps", "1000", "the total"},
                                 {"a.b", "x | y", "", "x|y", "one | two\nthree"}};

  EXPECT_EQ(markdown_table(rows),
            "| key | type | unit | default | meaning |\n|---|---|---|---|---|\n"
            "| `run.steps` | integer, 0 or more | steps | `1000` | the total |\n"
            "| `a.b` | x \\| y |  | `x\\|y` | one \\| two three |\n");
}

}  // namespace
}  // namespace dew
