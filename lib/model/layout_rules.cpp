#include "model/layout_rules.h"

#include <algorithm>

#include "base/text.h"

namespace dew {
namespace {

constexpr std::string_view kStorageRule = "storage";

std::vector<std::string> rule_names() {
  std::vector<std::string> names;
  for (int i = 0; i < kLogicalAxisCount; ++i) names.emplace_back(name_of(static_cast<LogicalAxis>(i)));
  names.emplace_back(kStorageRule);
  return names;
}

/// Storage takes the row axes: ranks that hold the same weights and different rows.
bool may_store(Axis axis) {
  return axis == Axis::kFsdp || axis == Axis::kExpert;
}

}  // namespace

LayoutRules make_layout_rules(const LayoutSection& section, ConfigSection root) {
  LayoutRules rules;
  rules.min_shard = section.min_shard;
  for (LogicalAxis axis :
       {LogicalAxis::kVocab, LogicalAxis::kHeads, LogicalAxis::kKvHeads, LogicalAxis::kMlp})
    rules.split[static_cast<std::size_t>(axis)] = {Axis::kTensor};
  const std::vector<std::string> names = rule_names();
  for (const auto& [name, axes] : section.rules) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      const std::string near = nearest_word(name, names);
      root.error("layout.rules." + name, "unknown logical axis" +
                                             (near.empty() ? "" : "; did you mean " + near + "?") +
                                             "; accepted: vocab, width, heads, kv_heads, mlp, storage");
      continue;
    }
    if (name == kStorageRule) {
      rules.storage = {};
      for (Axis axis : axes) {
        rules.storage = rules.storage.with(axis);
        if (!may_store(axis)) root.error("layout.rules." + name, "accepted: a list of fsdp, expert");
      }
      continue;
    }
    // Width stands beside every dim that tensor splits, and no op computes with a part of it.
    const bool splits = name != name_of(LogicalAxis::kWidth);
    for (Axis axis : axes)
      if (!splits || axis != Axis::kTensor)
        root.error("layout.rules." + name, splits ? "accepted: [] or [tensor]" : "accepted: []");
    rules.split[static_cast<std::size_t>(found - names.begin())] = axes;
  }
  return rules;
}

Layout layout_of(const ParamSpec& spec, const LayoutRules& rules, const MeshShape& mesh) {
  std::vector<std::vector<Axis>> split;
  AxisSet split_axes;
  for (const DimMeaning& dim : spec.axes) {
    split.push_back(rules.split[static_cast<std::size_t>(dim.axis)]);
    for (Axis by : split.back()) split_axes = split_axes.with(by);
  }
  const AxisSet storage = spec.shape.numel() >= rules.min_shard ? rules.storage : AxisSet{};
  return Layout(spec.shape, std::move(split), storage, kDataAxes - storage - split_axes, mesh);
}

std::vector<AxisSet> groups_of(std::span<const ParamSpec> params, const LayoutRules& rules,
                               const MeshShape& mesh) {
  std::vector<AxisSet> groups;
  for (const ParamSpec& spec : params) {
    const Layout layout = layout_of(spec, rules, mesh);
    for (AxisSet axes : {layout.storage_axes(), layout.reduce_axes()})
      if (std::find(groups.begin(), groups.end(), axes) == groups.end()) groups.push_back(axes);
  }
  return groups;
}

PlacementAudit audit_placement(std::span<const ParamSpec> params, const LayoutRules& rules,
                               const MeshShape& mesh) {
  PlacementAudit audit;
  for (const ParamSpec& spec : params) {
    const std::int64_t elements = spec.shape.numel();
    audit.elements += elements;
    if (mesh[Axis::kFsdp] == 1) continue;
    if (mesh.size_of(layout_of(spec, rules, mesh).storage_axes()) > 1)
      audit.sharded += elements;
    else if (elements < rules.min_shard)
      audit.whole_small += elements;
    else
      audit.whole_by_rule += elements;
  }
  return audit;
}

}  // namespace dew
