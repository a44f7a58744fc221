// What a chain passes from block to block and what each block costs, from a forward on tensors without
// memory.
#pragma once

#include <set>
#include <vector>

#include "autograd/sequence_rule.h"
#include "model/layout_rules.h"
#include "model/model.h"

namespace dew {

/// One value between two blocks, as one rank holds it.
struct Boundary {
  Shape shape;
  DType dtype = DType::kF32;
  Placements placements;
};

struct BlockSurvey {
  double flops = 0;  ///< of the forward on one microbatch: matrix products and attention
  std::vector<Boundary> out;
};

struct ChainSurvey {
  std::vector<BlockSurvey> blocks;
  std::set<SequenceCall> attention_calls;  ///< over a sequence axis of extent above 1
};

struct RunSpec;

/// Runs the chain once on a microbatch of the spec's shapes as the rank at `coord` sees it. Throws
/// ConfigError where the policy finds no exchange for an attention call.
ChainSurvey survey_chain(const Model& model, const LayoutRules& rules, const RunSpec& spec,
                         const SequencePolicy& policy, const MeshShape& shape, const MeshCoord& coord);

/// Sharded over the data axes of extent above 1: what one value a token is on this mesh.
Placements token_placements(const MeshShape& mesh);

}  // namespace dew
