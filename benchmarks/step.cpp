// One training step of a run description, timed: tokens/s, the share of each kind of kernel and of waiting,
// the rate of the matrix products, page faults and allocations in a steady step, what each group of ranks
// sent (all ranks together; the wait is rank 0's) and of it what went to other nodes, and the peak of memory
// against the plan's.
//
//   bench_step RUN.yaml [--steps N] [--set key.path=value]...      alone or under mpirun
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/timer.h"
#include "comm/mpi_env.h"
#include "kernels/threads.h"
#include "run_file.h"
#include "traffic.h"
#include "train/run_setup.h"
#include "train/step.h"
#include "train/throughput.h"

namespace {

std::int64_t page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

void print_shares(const dew::Profile& profile, double seconds, int steps) {
  double counted = 0;
  for (std::size_t i = 0; i < dew::kKernelKindCount; ++i) {
    const auto kind = static_cast<dew::KernelKind>(i);
    const dew::KernelTotals& totals = profile[kind];
    if (totals.calls == 0) continue;
    counted += totals.seconds;
    std::printf("  %-14s %6.2f%%  %9.3f ms  %5lld calls", std::string(name_of(kind)).c_str(),
                100 * totals.seconds / seconds, 1e3 * totals.seconds / steps,
                static_cast<long long>(totals.calls / steps));
    if (totals.flops > 0) std::printf("  %7.1f GFLOP/s", totals.flops / totals.seconds * 1e-9);
    if (totals.bytes > 0) std::printf("  %6.1f GB/s", totals.bytes / totals.seconds * 1e-9);
    std::printf("\n");
  }
  std::printf("  %-14s %6.2f%%\n", "other", 100 * (1 - counted / seconds));
}

struct Measures {
  std::vector<double> times;                 ///< by step, s
  double total = 0, host_wait = 0;           ///< over the steps, s
  double first_step = 0;                     ///< end of the first step since MPI started, s
  double peak_flops = 0;                     ///< of one rank
  std::int64_t faults = 0, allocations = 0;  ///< over the steps
  double sent = 0;                           ///< by this node's interfaces over the steps, bytes
};

/// Two steps that are not measured, then the measured ones. Collective.
void take_steps(const dew::RunSetup& setup, dew::Engine& engine, dew::Mesh& mesh, dew::Stream& stream,
                int steps, double mpi_started_at, Measures& measured) {
  const dew::DataFeed feed(*setup.source, setup.spec, mesh, setup.ranks);
  constexpr int kWarmUp = 2;
  for (int step = 1; step <= kWarmUp + steps; ++step) {
    if (step == kWarmUp + 1) {
      setup.ranks.barrier();
      measured.sent = -dew::bench::interface_bytes();
      mesh.clear_traffic();
      stream.profile().clear();
      stream.profile().timed = true;
      measured.allocations = -stream.allocator().system_allocations();
      measured.faults = -page_faults();
    }
    const double begin = dew::steady_seconds();
    const dew::StepResult result = run_gradients(engine, feed, step, {}, setup.ranks, stream);
    apply_update(engine, setup.spec, step, result.sums);
    if (step == 1) measured.first_step = dew::steady_seconds() - mpi_started_at;
    if (step <= kWarmUp) continue;
    measured.times.push_back(dew::steady_seconds() - begin);
    measured.total += measured.times.back();
    measured.host_wait += result.wait_seconds;
  }
  measured.faults += page_faults();
  measured.allocations += stream.allocator().system_allocations();
  setup.ranks.barrier();
  measured.sent += dew::bench::interface_bytes();
  std::sort(measured.times.begin(), measured.times.end());
}

void print_speed(const dew::RunSetup& setup, const Measures& measured, dew::Stream& stream) {
  const auto steps = static_cast<int>(measured.times.size());
  const double best = measured.times.front(), median = measured.times[measured.times.size() / 2];
  const double tokens = static_cast<double>(setup.spec.data.batch * setup.spec.data.seq_len);
  std::printf("step_ms best %.3f median %.3f tokens_per_second %.0f\n", 1e3 * best, 1e3 * median,
              tokens / best);
  print_shares(stream.profile(), measured.total, steps);
  std::printf("  %-14s %6.2f%%\n", "agreement", 100 * measured.host_wait / measured.total);
  std::printf("faults_per_step %.1f system_allocations_per_step %.2f\n",
              static_cast<double>(measured.faults) / steps,
              static_cast<double>(measured.allocations) / steps);
  std::printf("first_step_seconds_after_mpi_init %.3f peak_gflops_per_rank %.1f mfu %.3f\n",
              measured.first_step, measured.peak_flops * 1e-9,
              setup.plan.model_flops_per_token * tokens / best / (measured.peak_flops * setup.ranks.size()));
  std::printf("peak_mib %.2f planned_mib %.2f model_gflop_per_step %.2f\n",
              static_cast<double>(stream.allocator().use().total_peak) / (1 << 20),
              static_cast<double>(setup.plan.memory.total_peak) / (1 << 20),
              setup.plan.model_flops_per_token * tokens * 1e-9);
}

void run(const Options& options, const dew::MpiEnv& mpi) {
  const auto setup = dew::prepare_run(dew::bench::read_config(options), mpi.world());
  dew::Allocator allocator(dew::Device{});
  dew::Stream stream(allocator);
  dew::Mesh mesh(setup->ranks, setup->mesh, setup->groups);
  stream.set_progress([&mesh] { mesh.poll(); });
  dew::Engine engine(setup->parts(), mesh, stream);
  Measures measured;
  measured.peak_flops = measure_peak(setup->spec.precision.compute, setup->ranks, stream);
  engine.initialize();
  take_steps(*setup, engine, mesh, stream, options.count, mpi.started_at(), measured);
  if (setup->ranks.rank() == 0) print_speed(*setup, measured, stream);
  dew::bench::print_traffic(*setup, mesh, options.count, measured.sent);
}

}  // namespace

int main(int argc, char** argv) {
  const dew::HostResources host = dew::prepare_launch();
  dew::MpiEnv mpi(argc, argv);
  dew::kernels::set_threads(host.threads);
  try {
    run(parse_options({argv, static_cast<std::size_t>(argc)}, "--steps", 10), mpi);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_step: %s\n", error.what());
    mpi.abort(1);
  }
  return 0;
}
