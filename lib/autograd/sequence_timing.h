// Trial of the exchanges: `sequence_exchange: measured`.
#pragma once

#include <map>
#include <set>

#include "autograd/sequence_rule.h"
#include "comm/mesh.h"

namespace dew {

/// The fastest exchange of each call: forward and backward of every candidate that can run, on random
/// numbers, once to warm up and three times by the clock; the slowest rank counts. The same answer on all
/// ranks. Calls over one rank are left out. Collective over the mesh.
std::map<SequenceCall, SequenceExchange> time_exchanges(const std::set<SequenceCall>& calls, const Mesh& mesh,
                                                        DType dtype, Stream& stream);

}  // namespace dew
