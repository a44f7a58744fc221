#include "train/plan.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "train/data_feed.h"

namespace dew {
namespace {

double model_flops(const Profile& profile) {
  return profile[KernelKind::kGemm].flops + profile[KernelKind::kAttention].flops;
}

struct DryStep {
  Profile profile;
  MemoryUse memory;  ///< with the peaks of a step and an evaluation
  std::map<std::string, Traffic> traffic;
};

/// One step and one evaluation on a meta stream as the rank at `coord`.
DryStep dry_step(const EngineParts& parts, const MeshShape& shape, const MeshCoord& coord) {
  Allocator allocator({Device::Kind::kMeta, 0});
  Stream stream(allocator);
  const Mesh mesh(shape, coord, groups_of(parts.model.params(), parts.rules, shape));
  Engine engine(parts, mesh, stream);
  engine.initialize();
  stream.profile().clear();
  const std::vector<Microbatch> batches =
      dry_microbatches(parts.spec, shape, coord, engine.token_placements(), stream);
  // The next step's are read meanwhile.
  const std::vector<Microbatch> ahead =
      dry_microbatches(parts.spec, shape, coord, engine.token_placements(), stream);
  engine.gradients(batches);
  DryStep step{stream.profile(), {}, mesh.traffic()};
  engine.update(1, 0, 1);
  Microbatch evaluated = batches.front();
  evaluated.draws.reset();
  engine.evaluate(evaluated);
  step.memory = allocator.use();
  return step;
}

}  // namespace

Plan make_plan(const EngineParts& parts, const MeshShape& mesh) {
  Plan plan;
  // A rank in the middle of the sequence holds more than the first one, which has no neighbour before it.
  for (int stage = 0; stage < mesh[Axis::kStage]; ++stage) {
    std::int64_t& peak = plan.stage_peaks.emplace_back(0);
    for (int sequence = 0; sequence < mesh[Axis::kSequence];
         sequence += std::max(1, mesh[Axis::kSequence] - 1)) {
      MeshCoord coord{};
      coord[static_cast<std::size_t>(Axis::kStage)] = stage;
      coord[static_cast<std::size_t>(Axis::kSequence)] = sequence;
      DryStep step = dry_step(parts, mesh, coord);
      if (stage == 0 && sequence == 0) {
        plan.flops_per_step = model_flops(step.profile);
        plan.traffic = std::move(step.traffic);
      }
      peak = std::max(peak, step.memory.total_peak);
      if (step.memory.total_peak > plan.memory.total_peak) plan.memory = step.memory;
    }
  }
  const RematPolicy nothing_dropped;
  const ChainCut whole = whole_chain(parts.cut.blocks());
  const EngineParts plain{parts.spec, parts.model, parts.rules, nothing_dropped, whole, parts.sequence};
  const double tokens =
      static_cast<double>(parts.spec.data.batch) * static_cast<double>(parts.spec.data.seq_len);
  plan.model_flops_per_token = model_flops(dry_step(plain, MeshShape{}, MeshCoord{}).profile) / tokens;
  const std::vector<ParamSpec> params = parts.model.params();
  plan.audit = audit_placement(params, parts.rules, mesh);
  return plan;
}

std::string describe_memory(const MemoryUse& use) {
  std::vector<std::size_t> order(kOwnerCount);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&use](std::size_t a, std::size_t b) {
    return use.at_total_peak[a] > use.at_total_peak[b];
  });
  std::string text;
  for (std::size_t owner : order) {
    if (use.at_total_peak[owner] == 0) continue;
    if (!text.empty()) text += ", ";
    text += std::string(name_of(static_cast<Owner>(owner))) + ' ' +
            format_bytes(static_cast<double>(use.at_total_peak[owner]));
  }
  return text;
}

std::string memory_error(const Plan& plan, std::span<const int> local_stages, std::int64_t available) {
  double needed = 0;
  for (int stage : local_stages)
    needed += static_cast<double>(plan.stage_peaks[static_cast<std::size_t>(stage)]);
  if (needed <= static_cast<double>(available)) return {};
  return format("the run needs %s on this node (%zu ranks of up to %s: %s), and %s are free",
                format_bytes(needed).c_str(), local_stages.size(),
                format_bytes(static_cast<double>(plan.memory.total_peak)).c_str(),
                describe_memory(plan.memory).c_str(), format_bytes(static_cast<double>(available)).c_str());
}

}  // namespace dew
