#include <algorithm>
#include <array>

#include "base/text.h"
#include "io/config_value.h"
#include "io/run_spec_words.h"

namespace dew {
namespace {

using Extents = std::array<std::optional<std::int64_t>, kAxisCount>;

std::size_t at(Axis axis) {
  return static_cast<std::size_t>(axis);
}

std::vector<std::string> axis_words() {
  std::vector<std::string> words;
  words.reserve(kAxisCount);
  for (Axis axis : kAllAxes) words.emplace_back(name_of(axis));
  return words;
}

std::string_view meaning_of(Axis axis) {
  switch (axis) {
    case Axis::kReplica:
      return "whole copies of the state; auto: what the other axes leave";
    case Axis::kStage:
      return "pipeline stages: consecutive layers";
    case Axis::kFsdp:
      return "fully sharded data parallel: ranks that share the state of one copy; auto without replica: a "
             "node, "
             "where the sizes allow";
    case Axis::kExpert:
      return "split of experts; rows of the batch for every other weight";
    case Axis::kSequence:
      return "split of token positions";
    case Axis::kTensor:
      return "split of widths, heads and the vocabulary";
  }
  return "";
}

/// "replica auto x stage 1 x fsdp 3 x ..."
std::string product_text(const Extents& extent) {
  std::string text;
  for (Axis axis : kAllAxes) {
    text += (text.empty() ? "" : " x ") + std::string(name_of(axis)) + ' ' +
            (extent[at(axis)] ? std::to_string(*extent[at(axis)]) : "auto");
  }
  return text;
}

void read_extents(ConfigSection s, MeshSection& mesh) {
  Extents& extent = mesh.extent;
  const auto read = [&](Axis axis, std::optional<std::int64_t> fallback) {
    return s.integer_or({name_of(axis), "ranks", meaning_of(axis)}, "auto", fallback, {.low = 1});
  };
  bool other_auto = false;
  for (Axis axis : kAllAxes) {
    if (axis == Axis::kReplica) continue;
    extent[at(axis)] = read(axis, 1);
    other_auto = other_auto || !extent[at(axis)];
  }
  mesh.hybrid = !s.has("replica") && !extent[at(Axis::kFsdp)];
  // Read last: its default gives way to another axis that takes what is left.
  extent[at(Axis::kReplica)] =
      read(Axis::kReplica, other_auto ? std::optional<std::int64_t>(1) : std::nullopt);
}

bool check_autos(const Extents& extent, ConfigSection root) {
  if (std::count(extent.begin(), extent.end(), std::nullopt) <= 1) return true;
  root.error("mesh", product_text(extent) + ": more than one axis is auto; accepted: at most one");
  return false;
}

}  // namespace

bool checked_product(std::initializer_list<std::int64_t> values, std::int64_t& product) {
  product = 1;
  // A zero after an overflow would still give zero.
  if (std::find(values.begin(), values.end(), 0) != values.end()) {
    product = 0;
    return true;
  }
  return std::all_of(values.begin(), values.end(),
                     [&](std::int64_t value) { return !__builtin_mul_overflow(product, value, &product); });
}

std::vector<Axis> axes_of(ConfigSection section, const std::string& key,
                          const std::vector<std::string>& words) {
  const std::vector<std::string> accepted = axis_words();
  std::vector<Axis> axes;
  for (const std::string& word : words) {
    const std::optional<Axis> axis = axis_named(word);
    if (!axis) {
      const std::string near = nearest_word(word, accepted);
      section.error(key, "\"" + shown(word) + "\" is no mesh axis; " +
                             (near.empty() ? "" : "did you mean " + near + "? ") +
                             "accepted: replica, stage, fsdp, expert, sequence and tensor");
    } else if (std::find(axes.begin(), axes.end(), *axis) != axes.end()) {
      section.error(key, word + " comes twice; accepted: each axis once");
    } else {
      axes.push_back(*axis);
    }
  }
  return axes;
}

MeshSection read_mesh(ConfigSection root) {
  ConfigSection s = root.section({"mesh", "", "axes over which ranks are laid out"});
  MeshSection mesh;
  read_extents(s, mesh);
  const std::vector<Axis> order =
      axes_of(s, "order",
              s.texts({"order", "", "axes, outermost first; ranks along the last are neighbours in a node"},
                      axis_words()));
  if (order.size() == kAxisCount) {
    std::copy(order.begin(), order.end(), mesh.order.begin());
  } else {
    s.error("order", "accepted: each of replica, stage, fsdp, expert, sequence and tensor once");
  }
  for (Axis axis :
       axes_of(s, "across_nodes",
               s.texts({"across_nodes", "", "axes whose groups may span nodes; others are refused there"},
                       {"replica", "stage", "fsdp"}))) {
    mesh.across_nodes = mesh.across_nodes.with(axis);
  }
  mesh.ranks = s.integer_or({"ranks", "ranks", "for --plan alone, which is not available in this version"},
                            "null", std::nullopt, {.low = 1});
  if (mesh.ranks)
    s.error("ranks", "is for --plan alone, which is not available in this version; accepted: null");
  check_autos(mesh.extent, root);
  return mesh;
}

namespace {

/// Whole copies of the state for `fsdp: auto`: one a node, when the axes inside fit a node; else as many as
/// leave whole nodes to the stages; else one.
std::int64_t hybrid_replicas(const Extents& extent, std::int64_t ranks, std::int64_t nodes) {
  const auto size = [&extent](Axis axis) { return extent[at(axis)].value_or(1); };
  const std::int64_t stages = size(Axis::kStage), node = ranks / nodes;
  std::int64_t inside = 1, copy = 1;
  if (!checked_product({size(Axis::kExpert), size(Axis::kSequence), size(Axis::kTensor)}, inside) ||
      !checked_product({inside, stages}, copy))
    return 1;
  if (node % copy == 0) return nodes;
  return nodes % stages == 0 && node % inside == 0 ? nodes / stages : 1;
}

}  // namespace

MeshShape resolve_mesh(const MeshSection& given_mesh, int ranks, int nodes, ConfigSection root) {
  MeshSection mesh = given_mesh;
  if (mesh.hybrid && nodes > 1 && check_autos(mesh.extent, root))
    mesh.extent[at(Axis::kReplica)] = hybrid_replicas(mesh.extent, ranks, nodes);
  MeshShape shape;
  shape.order = mesh.order;
  if (!check_autos(mesh.extent, root)) return shape;
  std::int64_t fixed = 1;
  bool fits = true;
  std::optional<Axis> open;
  for (Axis axis : kAllAxes) {
    const std::optional<std::int64_t>& extent = mesh.extent[at(axis)];
    if (!extent) open = axis;
    fits = fits && checked_product({fixed, extent.value_or(1)}, fixed);
  }
  const std::string sizes = product_text(mesh.extent);
  const std::string given = std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
  if (!fits || (open ? ranks % fixed != 0 : fixed != ranks)) {
    const std::string found = fits ? std::to_string(fixed) : "more than 2^63";
    root.error("mesh", open ? sizes + ": " + found + " does not divide " + given +
                                  "; accepted: sizes whose product divides " + std::to_string(ranks)
                            : sizes + " = " + found + " does not fit " + given +
                                  "; accepted: sizes whose product is " + std::to_string(ranks) +
                                  ", or auto for one of them");
    return shape;
  }
  for (Axis axis : kAllAxes) shape[axis] = static_cast<int>(mesh.extent[at(axis)].value_or(ranks / fixed));
  return shape;
}

void check_batch(const RunSpec& spec, const MeshShape& mesh, ConfigSection root) {
  const std::int64_t rows = mesh.size_of(kRowAxes), sequence = mesh[Axis::kSequence];
  const std::int64_t batch = spec.data.batch, microbatches = microbatches_of(spec, mesh);
  if (spec.data.seq_len % sequence != 0)
    root.error("data.seq_len", "does not divide by sequence " + std::to_string(sequence) +
                                   "; accepted: a multiple of " + std::to_string(sequence));
  std::int64_t parts = 0;
  const bool counted = checked_product({rows, microbatches}, parts);
  if (counted && batch % parts == 0) return;
  std::string text = "does not divide by " + std::to_string(rows) + " row ranks";
  const char* separator = " (";
  for (Axis axis : kAllAxes) {
    if (!kRowAxes.has(axis)) continue;
    text += separator + std::string(name_of(axis)) + ' ' + std::to_string(mesh[axis]);
    separator = " x ";
  }
  text += ") times " + std::to_string(microbatches) + " microbatches (accumulate" +
          (mesh[Axis::kStage] > 1 ? " x pipeline.microbatches)" : ")");
  if (counted) {
    const std::int64_t below = batch - batch % parts;
    text += " = " + std::to_string(parts) +
            "; accepted: " + (below > 0 ? std::to_string(below) + " or " : "") +
            std::to_string(below + parts) + ", or another multiple of " + std::to_string(parts);
  }
  root.error("data.batch", text);
}

}  // namespace dew
