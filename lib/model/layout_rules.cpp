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

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// Storage takes axes whose ranks hold the same weights and different tokens, replica apart: its copies are
/// whole by definition.
bool may_store(Axis axis) {
  return axis == Axis::kFsdp || axis == Axis::kExpert || axis == Axis::kSequence;
}

int ranks_of(const std::vector<Axis>& axes, const MeshShape& mesh) {
  int ranks = 1;
  for (Axis axis : axes) ranks *= mesh[axis];
  return ranks;
}

/// A dim of a parameter on a mesh: the axes that split it, and whether they can.
struct DimSplit {
  std::vector<Axis> axes;
  std::int64_t units = 0;
  int ranks = 1;
  bool divides = true;
};

DimSplit split_of(const ParamSpec& spec, int dim, const LayoutRules& rules, const MeshShape& mesh) {
  const DimMeaning& meaning = spec.axes[static_cast<std::size_t>(dim)];
  const auto axes_of = [&rules](LogicalAxis axis) { return rules.split[static_cast<std::size_t>(axis)]; };
  DimSplit split{axes_of(meaning.axis), meaning.units > 0 ? meaning.units : spec.shape.dim(dim)};
  split.ranks = ranks_of(split.axes, mesh);
  split.divides = split.units % split.ranks == 0;
  // Keys are split with the queries that look at them, or not at all.
  if (meaning.axis == LogicalAxis::kKvHeads &&
      (!split.divides || ranks_of(axes_of(LogicalAxis::kHeads), mesh) != split.ranks))
    return {{}, split.units};
  if (meaning.axis == LogicalAxis::kVocab) split.divides = true;
  return split;
}

std::string refusal(const DimSplit& split) {
  std::string text = std::to_string(split.units) + " does not divide by tensor " +
                     std::to_string(split.ranks) + "; accepted: a multiple of " +
                     std::to_string(split.ranks) + ", or tensor ";
  constexpr std::int64_t kListed = 64;  // larger extents are rarely meant
  for (std::int64_t n = 1; n <= std::min(split.units, kListed); ++n)
    if (split.units % n == 0) text += (n > 1 ? ", " : "") + std::to_string(n);
  return text;
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
                                             "; accepted: " + joined(names));
      continue;
    }
    if (name == kStorageRule) {
      rules.storage = {};
      for (Axis axis : axes) {
        rules.storage = rules.storage.with(axis);
        if (!may_store(axis))
          root.error("layout.rules." + name, "accepted: a list of fsdp, expert, sequence");
      }
      continue;
    }
    // Width stands beside every dim that tensor splits, and no op computes with a part of it or of the
    // others.
    const bool splits = name != name_of(LogicalAxis::kWidth) && name != name_of(LogicalAxis::kHeadWidth) &&
                        name != name_of(LogicalAxis::kPositions);
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
  for (int d = 0; d < spec.shape.dims(); ++d) {
    const DimSplit dim = split_of(spec, d, rules, mesh);
    DEW_CHECK(dim.divides, spec.name, refusal(dim));
    split.push_back(dim.axes);
    for (Axis by : dim.axes) split_axes = split_axes.with(by);
  }
  const AxisSet storage = spec.shape.numel() >= rules.min_shard ? rules.storage : AxisSet{};
  // Over tensor ranks share tokens and heads: what is whole has met the rank's own alone.
  const AxisSet reduce = kDataAxes.with(Axis::kTensor) - storage - split_axes;
  return Layout(spec.shape, std::move(split), storage, reduce, mesh);
}

std::vector<SplitError> split_errors(std::span<const ParamSpec> params, const LayoutRules& rules,
                                     const MeshShape& mesh) {
  std::vector<SplitError> errors;
  for (const ParamSpec& spec : params) {
    for (int d = 0; d < spec.shape.dims(); ++d) {
      const DimSplit dim = split_of(spec, d, rules, mesh);
      if (dim.divides) continue;
      SplitError error{"model." + std::string(name_of(spec.axes[static_cast<std::size_t>(d)].axis)),
                       refusal(dim)};
      const bool known = std::any_of(errors.begin(), errors.end(), [&error](const SplitError& other) {
        return other.key == error.key && other.message == error.message;
      });
      if (!known) errors.push_back(std::move(error));
    }
  }
  return errors;
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
    if (mesh.size_of(rules.storage.with(Axis::kFsdp)) == 1) continue;
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
