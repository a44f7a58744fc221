// The one table from what a dim means to the mesh axes that split it, and the rule of what is stored in
// shards.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "comm/layout.h"
#include "io/config.h"
#include "io/run_spec.h"
#include "model/param_spec.h"

namespace dew {

struct LayoutRules {
  /// Mesh axes that split a dim of this meaning, by LogicalAxis.
  std::array<std::vector<Axis>, kLogicalAxisCount> split;
  /// Mesh axes over which a parameter's elements are stored in shards.
  AxisSet storage{Axis::kFsdp};
  /// Parameters of fewer elements stay whole.
  std::int64_t min_shard = 0;
};

/// The default table under `layout.rules`. A rule names a logical axis, or `storage`. Notes errors for
/// unknown names and for axes that cannot serve there.
LayoutRules make_layout_rules(const LayoutSection& section, ConfigSection root);

/// Where a parameter lives on a mesh: its split by the table, its storage axes unless it is small, and its
/// gradient's all-reduce over every remaining data axis. A parameter that tensor does not split meets its
/// rank's share of the tokens or heads alone, so that its gradient is summed over tensor too. Key/value heads
/// that do not divide stay whole; a vocabulary that does not divide gives the last ranks less.
Layout layout_of(const ParamSpec& spec, const LayoutRules& rules, const MeshShape& mesh);

/// Why dims cannot be split as the rules say, with the numbers: "model.heads" and "6 does not divide by
/// tensor 4; accepted: ...". Empty when all can.
struct SplitError {
  std::string key, message;
};
std::vector<SplitError> split_errors(std::span<const ParamSpec> params, const LayoutRules& rules,
                                     const MeshShape& mesh);

/// The groups over which parameters of these layouts are gathered and reduced, each once: a mesh must have
/// them.
std::vector<AxisSet> groups_of(std::span<const ParamSpec> params, const LayoutRules& rules,
                               const MeshShape& mesh);

/// How much of a model is stored in shards.
struct PlacementAudit {
  std::int64_t elements = 0;       ///< of all parameters, each name once
  std::int64_t sharded = 0;        ///< stored over more than one rank
  std::int64_t whole_small = 0;    ///< whole for being smaller than min_shard
  std::int64_t whole_by_rule = 0;  ///< at least min_shard, and kept whole by the rules
};
PlacementAudit audit_placement(std::span<const ParamSpec> params, const LayoutRules& rules,
                               const MeshShape& mesh);

}  // namespace dew
