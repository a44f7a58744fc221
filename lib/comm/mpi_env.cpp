#include "comm/mpi_env.h"

#include <mpi.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "base/check.h"
#include "base/timer.h"
#include "comm/mpi_check.h"

namespace dew {

MpiEnv::MpiEnv(int& argc, char**& argv) : world_(HostGroup::alone()) {
  int provided = 0;
  DEW_MPI(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
  started_at_ = steady_seconds();
  DEW_CHECK(provided >= MPI_THREAD_MULTIPLE, "MPI gives thread level", provided);
  // Communicators made from these two inherit the handler: every call returns its code, and DEW_MPI reads it.
  DEW_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  DEW_MPI(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  world_ = HostGroup::world();
}

MpiEnv::~MpiEnv() {
  // MPI_Finalize waits for all ranks. With an exception in flight the others may never come: the launcher
  // ends them when this process goes without finalizing.
  if (std::uncaught_exceptions() > 0) return;
  world_ = HostGroup::alone();
  MPI_Finalize();
}

void MpiEnv::abort(int status) const {
  std::fflush(nullptr);
  MPI_Abort(MPI_COMM_WORLD, status);
  std::_Exit(status);
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown host";
  return name.data();
}

}  // namespace dew
