// The table from meanings to mesh axes, and what of a model is stored in shards.
#include "model/layout_rules.h"

#include <gtest/gtest.h>

#include "support/tiny_models.h"

namespace dew::test {
namespace {

using Rules = std::map<std::string, std::vector<Axis>>;

LayoutRules rules_of(const Rules& rules, std::int64_t min_shard = 0) {
  return layout_rules_of(rules, min_shard);
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
  EXPECT_EQ(norm.reduce_axes(), kDataAxes.with(Axis::kTensor)) << "what is not scattered is summed";
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
    const bool stores = axis == Axis::kFsdp || axis == Axis::kExpert || axis == Axis::kSequence;
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

TEST(LayoutRules, SumOverTensorWhatTensorDoesNotSplit) {
  const LayoutRules rules = rules_of({});

  EXPECT_TRUE(layout_of(kNorm, rules, kWide).reduce_axes().has(Axis::kTensor));
  EXPECT_FALSE(layout_of(kMatrix, rules, kWide).reduce_axes().has(Axis::kTensor));
  EXPECT_TRUE(layout_of(kMatrix, rules_of({{"mlp", {}}}), kWide).reduce_axes().has(Axis::kTensor));
}

ParamSpec heads_spec(LogicalAxis axis, std::int64_t heads) {
  return {"w", {heads * 10, 4}, {{axis, heads}, LogicalAxis::kWidth}, {}};
}

TEST(LayoutRules, KeepKeyHeadsWholeThatDoNotDivide) {
  const MeshShape mesh = mesh_of({{Axis::kTensor, 4}});
  for (std::int64_t heads : {1, 2, 3, 6}) {
    const Layout layout = layout_of(heads_spec(LogicalAxis::kKvHeads, heads), rules_of({}), mesh);
    EXPECT_EQ(layout.split_axes(), AxisSet{}) << heads << " heads of 10 would divide by elements";
    EXPECT_TRUE(layout.reduce_axes().has(Axis::kTensor)) << heads;
  }
  EXPECT_EQ(layout_of(heads_spec(LogicalAxis::kKvHeads, 8), rules_of({}), mesh).compute_slab({}).extent,
            (Shape{20, 4}));
}

TEST(LayoutRules, SplitKeyHeadsWithTheQueryHeadsOnly) {
  const ParamSpec keys = heads_spec(LogicalAxis::kKvHeads, 4);

  EXPECT_EQ(layout_of(keys, rules_of({{"heads", {}}}), kWide).split_axes(), AxisSet{});
  EXPECT_EQ(layout_of(keys, rules_of({{"kv_heads", {}}}), kWide).split_axes(), AxisSet{});
  EXPECT_EQ(layout_of(keys, rules_of({}), kWide).split_axes(), AxisSet{Axis::kTensor});
}

TEST(LayoutRules, GiveTheLastRanksLessOfAVocabularyThatDoesNotDivide) {
  const MeshShape mesh = mesh_of({{Axis::kTensor, 4}});
  const ParamSpec table{"t", {3, 4}, {LogicalAxis::kVocab, LogicalAxis::kWidth}, {}};
  const Layout layout = layout_of(table, rules_of({}), mesh);

  EXPECT_EQ(layout.compute_slab(mesh.coord_of(2)).extent, (Shape{1, 4}));
  EXPECT_EQ(layout.compute_slab(mesh.coord_of(3)).extent, (Shape{0, 4}));
  EXPECT_TRUE(split_errors(std::vector<ParamSpec>{table}, rules_of({}), mesh).empty());
}

TEST(LayoutRules, RefuseHeadsAndHiddenWidthsThatDoNotDivide) {
  const Model model = decoder_of("layers: 2, width: 12, heads: 6, kv_heads: 3, mlp: 10, vocab: 7");
  const MeshShape mesh = mesh_of({{Axis::kTensor, 4}});

  const std::vector<SplitError> errors = split_errors(model.params(), rules_of({}), mesh);

  ASSERT_EQ(errors.size(), 2u) << "each once, whatever the layers";
  EXPECT_EQ(errors[0].key, "model.heads");
  EXPECT_EQ(errors[0].message,
            "6 does not divide by tensor 4; accepted: a multiple of 4, or tensor 1, 2, 3, 6");
  EXPECT_EQ(errors[1].key, "model.mlp");
  EXPECT_EQ(errors[1].message,
            "10 does not divide by tensor 4; accepted: a multiple of 4, or tensor 1, 2, 5, 10");
  EXPECT_THROW(layout_of(heads_spec(LogicalAxis::kHeads, 6), rules_of({}), mesh), Error);
  EXPECT_TRUE(split_errors(model.params(), rules_of({{"heads", {}}, {"mlp", {}}}), mesh).empty());
  EXPECT_TRUE(split_errors(model.params(), rules_of({}), mesh_of({{Axis::kTensor, 2}})).empty());
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
