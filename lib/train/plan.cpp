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

/// One step on a meta stream under a recomputation policy; returns the stream's profile.
Profile dry_step(const EngineParts& parts, const MeshShape& shape, Allocator& allocator, Plan* plan) {
  Stream stream(allocator);
  const Mesh mesh(shape, shape.coord_of(0), groups_of(parts.model.params(), parts.rules, shape));
  Engine engine(parts, mesh, stream);
  engine.initialize();
  stream.profile().clear();
  const std::vector<Microbatch> batches =
      dry_microbatches(parts.spec, shape, engine.token_placements(), stream);
  engine.gradients(batches);
  const Profile profile = stream.profile();
  engine.update(1, 0, 1);
  if (plan != nullptr) {
    plan->traffic = mesh.traffic();
    engine.evaluate(batches.front());
    plan->memory = allocator.use();
  }
  return profile;
}

}  // namespace

Plan make_plan(const EngineParts& parts, const MeshShape& mesh) {
  Plan plan;
  Allocator allocator({Device::Kind::kMeta, 0});
  const Profile step = dry_step(parts, mesh, allocator, &plan);
  plan.flops_per_step = model_flops(step);
  const RematPolicy nothing_dropped;
  const EngineParts plain{parts.spec, parts.model, parts.rules, nothing_dropped};
  Allocator again({Device::Kind::kMeta, 0});
  const double tokens = static_cast<double>(parts.spec.data.batch) *
                        static_cast<double>(parts.spec.data.seq_len) / mesh.size_of(kDataAxes);
  plan.model_flops_per_token = model_flops(dry_step(plain, mesh, again, nullptr)) / tokens;
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

std::string memory_error(const Plan& plan, int local_ranks, std::int64_t available) {
  const double needed = static_cast<double>(plan.memory.total_peak) * local_ranks;
  if (needed <= static_cast<double>(available)) return {};
  return format("the run needs %s on this node (%d ranks of %s: %s), and %s are free",
                format_bytes(needed).c_str(), local_ranks,
                format_bytes(static_cast<double>(plan.memory.total_peak)).c_str(),
                describe_memory(plan.memory).c_str(), format_bytes(static_cast<double>(available)).c_str());
}

}  // namespace dew
