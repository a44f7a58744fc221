#include "autograd/sequence_attention.h"

#include "autograd/attention.h"
#include "autograd/sequence_parts.h"

namespace dew {

Var sequence_attention(Scope& scope, const Var& q, const Var& k, const Var& v,
                       const kernels::AttentionMask& mask, const kernels::AttentionDropout& dropout) {
  Communicator& group = scope.mesh.along(Axis::kSequence);
  if (group.size() == 1) return attention(scope.tape, q, k, v, mask, dropout);
  for (const Var* var : {&q, &k, &v}) {
    DEW_CHECK(!var->placements.any_partial(), var->placements.str());
    DEW_CHECK(var->placements == q.placements, var->placements.str(), q.placements.str());
    DEW_CHECK(var->placements[Axis::kSequence] == Placement::kSharded, var->placements.str());
  }
  SequenceCall call;
  call.ranks = group.size();
  call.samples = q.value.dim(0);
  call.queries = q.value.dim(1) * call.ranks;
  call.keys = k.value.dim(1) * call.ranks;
  call.heads = q.value.dim(2);
  call.kv_heads = k.value.dim(2);
  call.head_width = q.value.dim(3);
  call.causal = mask.causal;
  call.window = mask.window;
  const SequenceParts parts{group, q.value, k.value, v.value, mask, dropout};
  switch (scope.sequence.choose(call).exchange) {
    case SequenceExchange::kAllToAll:
      return all_to_all_attention(scope.tape, {q, k, v}, parts);
    case SequenceExchange::kGather:
      return gather_attention(scope.tape, {q, k, v}, parts);
    case SequenceExchange::kBand:
      return band_attention(scope.tape, {q, k, v}, parts);
    case SequenceExchange::kRing:
      return ring_attention(scope.tape, {q, k, v}, parts);
  }
  throw Error("no such exchange");
}

}  // namespace dew
