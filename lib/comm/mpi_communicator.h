// The MPI communicator with its limit in the open, for the test that sends small tensors in many pieces.
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"

namespace dew {

/// As make_mpi_communicator; no MPI call moves more than `message_limit` bytes (at least a byte a rank).
std::unique_ptr<Communicator> make_mpi_communicator(std::string name, HostGroup group, MpiProgress& progress,
                                                    std::int64_t message_limit);

}  // namespace dew
