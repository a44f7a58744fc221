// MPI's life: started once by main, ended by its destructor. Errors of MPI calls become Error.
#pragma once

#include <string>

#include "comm/host_group.h"

namespace dew {

class MpiEnv {
 public:
  /// Starts MPI (thread level multiple), after `prepare_launch`. As one process without a launcher it is one
  /// rank.
  MpiEnv(int& argc, char**& argv);
  MpiEnv(const MpiEnv&) = delete;
  MpiEnv& operator=(const MpiEnv&) = delete;
  ~MpiEnv();  ///< ends MPI, with all ranks; when an exception is in flight it does nothing

  const HostGroup& world() const { return world_; }
  double started_at() const { return started_at_; }  ///< steady_seconds() when MPI_Init returned

  /// Ends every rank of the job with this exit status, at once.
  [[noreturn]] void abort(int status) const;

 private:
  HostGroup world_;
  double started_at_ = 0;
};

/// What this process may use of its node.
struct HostResources {
  int cores = 1;        ///< cores this process may run on, after a launcher's single-core binding was widened
  int local_ranks = 1;  ///< ranks of the job on this node, from the launcher's environment
  int threads = 1;      ///< OMP_NUM_THREADS when set, else this rank's share of the node's cores, at least 1
  bool yields = false;  ///< more ranks than cores: Open MPI was set to yield when idle
};

/// Must run before MPI starts: reads the launcher's environment (Open MPI, Slurm, PMIx), sets Open MPI to
/// yield when idle where ranks exceed cores, widens a binding that would leave cores idle. Applying `threads`
/// is the caller's.
HostResources prepare_launch();

/// This host's name, for error lines.
std::string host_name();

}  // namespace dew
