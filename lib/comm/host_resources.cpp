#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "comm/launcher.h"
#include "comm/mpi_env.h"

namespace dew {

namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : std::string_view(value);
}

int allowed_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  return sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : 1;
}

// Allows every core; the kernel keeps to those of this process's cpuset.
void allow_all_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (int core = 0; core < CPU_SETSIZE; ++core) CPU_SET(core, &mask);
  sched_setaffinity(0, sizeof mask, &mask);
}

// The cores of this process's cpuset, whatever it is bound to now. Only asking for all of them tells.
int cores_of_node() {
  cpu_set_t bound;
  CPU_ZERO(&bound);
  if (sched_getaffinity(0, sizeof bound, &bound) != 0) return 1;
  allow_all_cores();
  const int cores = allowed_cores();
  sched_setaffinity(0, sizeof bound, &bound);
  // Slurm may confine a task to its own cores; it tells the node's.
  return std::max(cores, leading_number(environment("SLURM_CPUS_ON_NODE")));
}

}  // namespace

int leading_number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return std::max(value, 0);
}

int local_ranks_of_launcher() {
  // Slurm writes "4(x2)" or "4,3": the first count is that of the first nodes.
  for (const char* name :
       {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMI_LOCAL_SIZE", "SLURM_STEP_TASKS_PER_NODE"}) {
    if (const int ranks = leading_number(environment(name)); ranks > 0) return ranks;
  }
  // A batch script has this one too, and a program that it runs without srun is one rank.
  if (environment("SLURM_STEP_ID").empty()) return 1;
  return std::max(1, leading_number(environment("SLURM_NTASKS_PER_NODE")));
}

HostResources prepare_launch() {
  HostResources resources;
  resources.local_ranks = local_ranks_of_launcher();
  const int threads = leading_number(environment("OMP_NUM_THREADS"));
  const int node_cores = cores_of_node();
  const int share = node_cores / resources.local_ranks;

  // Open MPI binds each of one or two ranks to a single core unless told otherwise, for programs without
  // threads.
  const bool bound_by_default = environment("OMPI_MCA_orte_bound_at_launch") == "1" &&
                                environment("OMPI_MCA_hwloc_base_binding_policy").empty();
  if (bound_by_default && threads == 0 && allowed_cores() < share) allow_all_cores();

  resources.cores = allowed_cores();
  resources.threads = threads > 0 ? threads : std::max(1, std::min(resources.cores, share));
  if (resources.local_ranks > node_cores) {
    const char* setting = "OMPI_MCA_mpi_yield_when_idle";
    setenv(setting, "1", 0);  // a value that the user gave stays
    resources.yields = environment(setting) == "1";
  }
  return resources;
}

}  // namespace dew
