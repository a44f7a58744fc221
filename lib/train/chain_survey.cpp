#include "train/chain_survey.h"

#include "train/data_feed.h"
#include "train/param_parts.h"

namespace dew {
namespace {

double counted_flops(const Profile& profile) {
  return profile[KernelKind::kGemm].flops + profile[KernelKind::kAttention].flops;
}

}  // namespace

Placements token_placements(const MeshShape& mesh) {
  AxisSet split;
  for (Axis axis : kAllAxes)
    if (kDataAxes.has(axis) && mesh[axis] > 1) split = split.with(axis);
  return Placements::sharded(split);
}

ChainSurvey survey_chain(const Model& model, const LayoutRules& rules, const RunSpec& spec,
                         const SequencePolicy& policy, const MeshShape& shape, const MeshCoord& coord) {
  ChainSurvey survey;
  SequencePolicy noting = policy;
  noting.seen = &survey.attention_calls;
  Allocator allocator({Device::Kind::kMeta, 0});
  Stream stream(allocator);
  const Mesh mesh(shape, coord, groups_of(model.params(), rules, shape));
  const RematPolicy keep_all;
  RopeTables tables;
  const Microbatch microbatch = dry_microbatches(spec, shape, coord, token_placements(shape), stream).front();
  Vars values;
  for (const auto& block : model.chain) {
    const std::vector<ParamPart> parts = param_parts(*block, rules, mesh);
    ParamViews views;
    views.parts = parts;
    for (const ParamPart& part : parts)
      views.values.push_back(
          Tensor::empty(part.slab.extent, spec.precision.compute, stream, Owner::kGathered));
    Tape tape(stream, views);
    Scope scope{tape, mesh, keep_all, tables, noting};
    const double before = counted_flops(stream.profile());
    values = block->forward(scope, microbatch, values);
    BlockSurvey entry{counted_flops(stream.profile()) - before, {}};
    for (const Var& value : values)
      entry.out.push_back({value.value.shape(), value.value.dtype(), value.placements});
    survey.blocks.push_back(std::move(entry));
  }
  return survey;
}

}  // namespace dew
