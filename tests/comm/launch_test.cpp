#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "comm/launcher.h"
#include "comm/mpi_env.h"

namespace dew {
namespace {

constexpr const char* kYield = "OMPI_MCA_mpi_yield_when_idle";
constexpr const char* kSingle[] = {"OMPI_COMM_WORLD_LOCAL_SIZE",
                                   "MPI_LOCALNRANKS",
                                   "PMI_LOCAL_SIZE",
                                   "SLURM_STEP_TASKS_PER_NODE",
                                   "SLURM_NTASKS_PER_NODE",
                                   "SLURM_STEP_ID",
                                   "SLURM_CPUS_ON_NODE",
                                   "OMP_NUM_THREADS",
                                   "OMPI_MCA_orte_bound_at_launch",
                                   "OMPI_MCA_hwloc_base_binding_policy",
                                   kYield};

// A launcher's environment and the affinity of this process, put back at the end.
class Launch : public ::testing::Test {
 protected:
  Launch() {
    for (const char* name : kSingle) {
      const char* value = std::getenv(name);
      if (value != nullptr) saved_.emplace_back(name, value);
      unsetenv(name);
    }
    CPU_ZERO(&mask_);
    sched_getaffinity(0, sizeof mask_, &mask_);
  }
  ~Launch() override {
    for (const char* name : kSingle) unsetenv(name);
    for (const auto& [name, value] : saved_) setenv(name.c_str(), value.c_str(), 1);
    sched_setaffinity(0, sizeof mask_, &mask_);
  }

  static void set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }

  // Binds this process to one of its cores, as Open MPI does with one or two ranks.
  void bind_to_one_core() const {
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core) {
      if (CPU_ISSET(core, &mask_)) CPU_SET(core, &one);
    }
    sched_setaffinity(0, sizeof one, &one);
  }

  int cores() const { return CPU_COUNT(&mask_); }

 private:
  std::vector<std::pair<std::string, std::string>> saved_;
  cpu_set_t mask_;
};

TEST_F(Launch, IsOneRankWithoutALauncher) {
  const HostResources resources = prepare_launch();

  EXPECT_EQ(resources.local_ranks, 1);
  EXPECT_EQ(resources.threads, resources.cores);
  EXPECT_FALSE(resources.yields);
  EXPECT_EQ(std::getenv(kYield), nullptr);
}

TEST_F(Launch, ReadsTheRanksOfANodeFromEachLauncher) {
  EXPECT_EQ(leading_number("4(x2),3"), 4);
  EXPECT_EQ(leading_number("x"), 0);
  set("SLURM_NTASKS_PER_NODE", "6");
  EXPECT_EQ(local_ranks_of_launcher(), 1);  // in a batch script, without srun
  set("SLURM_STEP_ID", "0");
  EXPECT_EQ(local_ranks_of_launcher(), 6);
  set("SLURM_STEP_TASKS_PER_NODE", "4(x2)");
  EXPECT_EQ(local_ranks_of_launcher(), 4);
  set("PMI_LOCAL_SIZE", "3");
  EXPECT_EQ(local_ranks_of_launcher(), 3);
  set("MPI_LOCALNRANKS", "5");
  EXPECT_EQ(local_ranks_of_launcher(), 5);
  set("OMPI_COMM_WORLD_LOCAL_SIZE", "2");
  EXPECT_EQ(local_ranks_of_launcher(), 2);
}

TEST_F(Launch, YieldsWhereRanksExceedCores) {
  set("OMPI_COMM_WORLD_LOCAL_SIZE", std::to_string(CPU_SETSIZE + 1));

  const HostResources resources = prepare_launch();

  EXPECT_TRUE(resources.yields);
  EXPECT_STREQ(std::getenv(kYield), "1");
  EXPECT_EQ(resources.threads, 1);
}

TEST_F(Launch, LeavesAYieldSettingOfTheUser) {
  set("OMPI_COMM_WORLD_LOCAL_SIZE", std::to_string(CPU_SETSIZE + 1));
  set(kYield, "0");

  EXPECT_FALSE(prepare_launch().yields);
  EXPECT_STREQ(std::getenv(kYield), "0");
}

TEST_F(Launch, WidensTheDefaultBindingOfALauncher) {
  set("OMPI_COMM_WORLD_LOCAL_SIZE", "1");
  set("OMPI_MCA_orte_bound_at_launch", "1");
  bind_to_one_core();

  EXPECT_GE(prepare_launch().cores, cores());
}

TEST_F(Launch, KeepsABindingThatTheUserChose) {
  set("OMPI_COMM_WORLD_LOCAL_SIZE", "1");
  set("OMPI_MCA_orte_bound_at_launch", "1");
  set("OMPI_MCA_hwloc_base_binding_policy", "core");
  bind_to_one_core();

  const HostResources resources = prepare_launch();

  EXPECT_EQ(resources.cores, 1);
  EXPECT_EQ(resources.threads, 1);
}

TEST_F(Launch, TakesTheThreadsThatTheUserGave) {
  set("OMP_NUM_THREADS", "3");

  EXPECT_EQ(prepare_launch().threads, 3);
}

}  // namespace
}  // namespace dew
