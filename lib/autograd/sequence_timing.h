// Trial of the exchanges: `sequence_exchange: measured`.
#pragma once

#include <map>
#include <set>

#include "autograd/sequence_rule.h"
#include "comm/mesh.h"

namespace dew {

/// Seconds of a forward and backward of one call by each exchange that can run it, on random numbers: once to
/// warm up, then the mean of `rounds`; the slowest rank counts. The same answer on all ranks. Collective over
/// the mesh.
std::map<SequenceExchange, double> exchange_seconds(const SequenceCall& call, const Mesh& mesh, DType dtype,
                                                    int rounds, Stream& stream);

/// The fastest exchange of each call. Calls over one rank are left out. Collective over the mesh.
std::map<SequenceCall, SequenceExchange> time_exchanges(const std::set<SequenceCall>& calls, const Mesh& mesh,
                                                        DType dtype, Stream& stream);

}  // namespace dew
