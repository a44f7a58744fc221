// The job that a test with ranks runs in. MPI is started by dew_mpi_main.
#pragma once

#include "comm/host_group.h"

namespace dew::testing {

/// All ranks of the test, with a communicator that the test alone uses.
const HostGroup& world();

}  // namespace dew::testing
