// Whether a long run stays as it began: step time and resident memory of the first and the last tenth of its
// steps, and page faults and system allocations of a step after the first tenth. Steps are whole ones, logged
// as the trainer does (log.every); there are no checkpoints and no evaluations.
//   bench_steady RUN.yaml [--steps N, default 10000] [--set key.path=value]...      alone or under mpirun
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <span>
#include <vector>

#include "base/timer.h"
#include "comm/mpi_env.h"
#include "kernels/threads.h"
#include "run_file.h"
#include "training_run.h"

namespace {

/// What the process has used so far.
struct Use {
  double resident = 0;  ///< MiB
  std::int64_t faults = 0, allocations = 0;
};

Use use_of(const dew::Allocator& allocator) {
  Use use;
  long long all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  use.resident = static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  use.faults = usage.ru_minflt + usage.ru_majflt;
  use.allocations = allocator.system_allocations();
  return use;
}

struct StepTimes {
  double best = 0, median = 0, mean = 0;  ///< s
};

StepTimes times_of(std::span<const double> seconds) {
  std::vector<double> sorted(seconds.begin(), seconds.end());
  std::sort(sorted.begin(), sorted.end());
  return {sorted.front(), sorted[sorted.size() / 2],
          std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size())};
}

void print_row(const char* name, const StepTimes& t, const Use& use) {
  std::printf("%-12s step_ms best %.3f median %.3f mean %.3f  resident_mib %.2f\n", name, 1e3 * t.best,
              1e3 * t.median, 1e3 * t.mean, use.resident);
}

void run(const Options& options, const dew::MpiEnv& mpi) {
  using namespace dew;
  bench::TrainingRun run(bench::read_config(options), mpi.world());
  const RunSpec& spec = run.setup->spec;
  bench::StepLog log(*run.setup);
  const auto steps = static_cast<std::size_t>(std::max(options.count, 20)), tenth = steps / 10;
  std::vector<double> seconds(steps, 0.0);
  Use early;
  for (std::size_t i = 0; i < steps; ++i) {
    const double begin = steady_seconds();
    const auto step = static_cast<std::int64_t>(i) + 1;
    const StepResult result = run_gradients(run.engine, run.feed, step, {}, run.setup->ranks, run.stream);
    apply_update(run.engine, spec, step, result.sums);
    if (step % spec.log_every == 0) log.write(step, steady_seconds() - begin, result.sums, run.allocator);
    seconds[i] = steady_seconds() - begin;
    if (i + 1 == tenth) early = use_of(run.allocator);
  }
  const Use late = use_of(run.allocator);
  if (run.setup->ranks.rank() != 0) return;
  const std::span<const double> all(seconds);
  const StepTimes first = times_of(all.first(tenth)), last = times_of(all.last(tenth));
  std::printf("%zu steps, a tenth each:\n", steps);
  print_row("first", first, early);
  print_row("last", last, late);
  std::printf("last_of_first step best %.4f median %.4f mean %.4f resident %.4f\n", last.best / first.best,
              last.median / first.median, last.mean / first.mean, late.resident / early.resident);
  const auto rest = static_cast<double>(steps - tenth);
  std::printf("faults_per_step %.4f system_allocations_per_step %.4f\n",
              static_cast<double>(late.faults - early.faults) / rest,
              static_cast<double>(late.allocations - early.allocations) / rest);
}

}  // namespace

int main(int argc, char** argv) {
  const dew::HostResources host = dew::prepare_launch();
  const dew::MpiEnv mpi(argc, argv);
  dew::kernels::set_threads(host.threads);
  try {
    run(parse_options({argv, static_cast<std::size_t>(argc)}, "--steps", 10000), mpi);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_steady: %s\n", error.what());
    mpi.abort(1);
  }
  return 0;
}
