// The table from meanings to mesh axes, and what of a model is stored in shards.
#include "model/layout_rules.h"

#include <gtest/gtest.h>

#include "support/tiny_models.h"

namespace dew::test {
namespace {

using Rules = std::map<std::string, std::vector<Axis>>;

LayoutRules rules_of(const Rules& rules, std::int64_t min_shard = 0) {
  LayoutSection section;
  section.min_shard = min_shard;
  section.rules = rules;
  Config config = Config::from_text("model: {}\n", "run.yaml");
  LayoutRules result = make_layout_rules(section, config.root());
  config.root().section({"model", "", ""});
  config.throw_errors();
  return result;
}

std::string refusal(const Rules& rules) {
  try {
    rules_of(rules);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was refused";
}

MeshShape mesh_of(std::initializer_list<std::pair<Axis, int>> extents) {
  MeshShape mesh;
  for (const auto& [axis, extent] : extents) mesh[axis] = extent;
  return mesh;
}

const ParamSpec kMatrix{"m", {6, 32}, {LogicalAxis::kMlp, LogicalAxis::kWidth}, {}};
const ParamSpec kNorm{"n", {32}, {LogicalAxis::kWidth}, {}};
const MeshShape kWide = mesh_of(
    {{Axis::kReplica, 2}, {Axis::kFsdp, 4}, {Axis::kExpert, 3}, {Axis::kSequence, 5}, {Axis::kTensor, 2}});

TEST(LayoutRules, StoreOverFsdpAndSumOverEveryOtherDataAxis) {
  const Layout layout = layout_of(kMatrix, rules_of({}), kWide);

  EXPECT_EQ(layout.split_axes(), AxisSet{Axis::kTensor});
  EXPECT_EQ(layout.storage_axes(), AxisSet{Axis::kFsdp});
  EXPECT_EQ(layout.reduce_axes(), (AxisSet{Axis::kReplica, Axis::kExpert, Axis::kSequence}));
}

TEST(LayoutRules, SplitEveryWideDimByTensorAndNoNorm) {
  const LayoutRules rules = rules_of({});
  for (LogicalAxis axis :
       {LogicalAxis::kVocab, LogicalAxis::kHeads, LogicalAxis::kKvHeads, LogicalAxis::kMlp}) {
    const ParamSpec spec{"w", {6, 4}, {axis, LogicalAxis::kWidth}, {}};
    EXPECT_EQ(layout_of(spec, rules, kWide).compute_slab({}).extent, (Shape{3, 4})) << name_of(axis);
  }
  EXPECT_EQ(layout_of(kNorm, rules, kWide).compute_slab({}).extent, kNorm.shape);
}

TEST(LayoutRules, KeepSmallParametersWhole) {
  const LayoutRules rules = rules_of({}, 33);

  EXPECT_EQ(layout_of(kMatrix, rules, kWide).storage_axes(), AxisSet{Axis::kFsdp});
  const Layout norm = layout_of(kNorm, rules, kWide);
  EXPECT_EQ(norm.storage_axes(), AxisSet{});
  EXPECT_EQ(norm.reduce_axes(), kDataAxes) << "what is not scattered is summed";
  EXPECT_EQ(layout_of(kNorm, rules_of({}, 32), kWide).storage_axes(), AxisSet{Axis::kFsdp})
      << "32 is not smaller";
}

TEST(LayoutRules, TakeRulesOverTheDefaults) {
  EXPECT_EQ(layout_of(kMatrix, rules_of({{"mlp", {}}}), kWide).split_axes(), AxisSet{});
  EXPECT_EQ(layout_of(kMatrix, rules_of({{"storage", {}}}), kWide).storage_axes(), AxisSet{});
  const Layout both = layout_of(kMatrix, rules_of({{"storage", {Axis::kFsdp, Axis::kExpert}}}), kWide);
  EXPECT_EQ(both.storage_axes(), (AxisSet{Axis::kFsdp, Axis::kExpert}));
  EXPECT_EQ(both.reduce_axes(), (AxisSet{Axis::kReplica, Axis::kSequence}));
}

TEST(LayoutRules, RefuseUnknownNamesWithTheNearest) {
  const std::string message = refusal({{"head", {}}});

  EXPECT_NE(message.find("layout.rules.head"), std::string::npos) << message;
  EXPECT_NE(message.find("did you mean heads"), std::string::npos) << message;
  EXPECT_NE(message.find("kv_heads, mlp, storage"), std::string::npos) << message;
}

TEST(LayoutRules, RefuseAxesThatCannotServe) {
  for (Axis axis : kAllAxes) {
    SCOPED_TRACE(name_of(axis));
    const bool stores = axis == Axis::kFsdp || axis == Axis::kExpert;
    if (stores)
      EXPECT_NO_THROW(rules_of({{"storage", {axis}}}));
    else
      EXPECT_NE(refusal({{"storage", {axis}}}).find("layout.rules.storage"), std::string::npos);
    for (const char* name : {"vocab", "heads", "kv_heads", "mlp"}) {
      if (axis == Axis::kTensor)
        EXPECT_NO_THROW(rules_of({{name, {axis}}}));
      else
        EXPECT_NE(refusal({{name, {axis}}}).find(std::string("layout.rules.") + name), std::string::npos)
            << name;
    }
  }
}

// A weight has one dim that tensor splits; width stands beside it, and no op computes with a part of the
// width.
TEST(LayoutRules, RefuseToSplitTheWidth) {
  EXPECT_NE(refusal({{"width", {Axis::kTensor}}}).find("layout.rules.width"), std::string::npos);
  EXPECT_NO_THROW(layout_of(kMatrix, rules_of({{"width", {}}}), kWide));
}

TEST(PlacementAudit, SaysWhatIsShardedAndWhyTheRestIsNot) {
  const std::vector<ParamSpec> params{kMatrix, kNorm};
  const MeshShape mesh = mesh_of({{Axis::kReplica, 2}, {Axis::kFsdp, 4}});
  const PlacementAudit sharded = audit_placement(params, rules_of({}, 33), mesh);
  const PlacementAudit whole = audit_placement(params, rules_of({{"storage", {}}}, 33), mesh);
  const PlacementAudit elsewhere =
      audit_placement(params, rules_of({{"storage", {Axis::kExpert}}}, 33), mesh);

  EXPECT_EQ(sharded.elements, 6 * 32 + 32);
  EXPECT_EQ(sharded.sharded, 6 * 32);
  EXPECT_EQ(sharded.whole_small, 32);
  EXPECT_EQ(sharded.whole_by_rule, 0);
  EXPECT_EQ(whole.sharded, 0);
  EXPECT_EQ(whole.whole_small, 32);
  EXPECT_EQ(whole.whole_by_rule, 6 * 32);
  EXPECT_EQ(elsewhere.whole_by_rule, 6 * 32) << "an axis of extent 1 stores nothing in shards";
}

TEST(PlacementAudit, HasNothingToSayWithoutFsdp) {
  const PlacementAudit audit =
      audit_placement(std::vector<ParamSpec>{kMatrix, kNorm}, rules_of({{"storage", {}}}, 33),
                      mesh_of({{Axis::kReplica, 8}}));

  EXPECT_EQ(audit.elements, 6 * 32 + 32);
  EXPECT_EQ(audit.sharded + audit.whole_small + audit.whole_by_rule, 0);
}

TEST(PlacementAudit, AddsUpToTheWholeModel) {
  const Model model = decoder_of("layers: 3, width: 32, heads: 2, vocab: 300, tied: true");
  const PlacementAudit audit =
      audit_placement(model.params(), rules_of({}, 1000), mesh_of({{Axis::kFsdp, 3}}));

  EXPECT_EQ(audit.elements, model.parameter_count());
  EXPECT_EQ(audit.sharded + audit.whole_small, audit.elements);
  EXPECT_EQ(audit.whole_small, 7 * 32) << "the norms";
}

}  // namespace
}  // namespace dew::test
