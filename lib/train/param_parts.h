// Which part of each of a block's parameters a rank computes with.
#pragma once

#include <vector>

#include "comm/mesh.h"
#include "model/block.h"
#include "model/layout_rules.h"

namespace dew {

ParamPart part_of(const ParamSpec& spec, const LayoutRules& rules, const Mesh& mesh);
/// By ParamRef.
std::vector<ParamPart> param_parts(const Block& block, const LayoutRules& rules, const Mesh& mesh);

}  // namespace dew
