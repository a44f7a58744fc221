#include "train/param_parts.h"

namespace dew {

ParamPart part_of(const ParamSpec& spec, const LayoutRules& rules, const Mesh& mesh) {
  const Layout layout = layout_of(spec, rules, mesh.shape());
  ParamPart part{layout.compute_slab(mesh.coord()), {}};
  for (int d = 0; d < spec.shape.dims(); ++d) part.split.push_back(layout.split_axes(d));
  return part;
}

std::vector<ParamPart> param_parts(const Block& block, const LayoutRules& rules, const Mesh& mesh) {
  std::vector<ParamPart> parts;
  for (const ParamSpec& spec : block.params()) parts.push_back(part_of(spec, rules, mesh));
  return parts;
}

}  // namespace dew
