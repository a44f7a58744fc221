// What a step spends on the moving average of the weights, the norm of the gradient with clipping, and a log
// line a step, together: two runs of one description in one process, with all of them and with none, take
// steps in turn. The difference is told twice: of the two step times, and of the parts alone, each timed
// where it stands, which a disturbance of the long rest of a step does not reach.
//   bench_extras RUN.yaml [--rounds N, default 20] [--set key.path=value]...      alone or under mpirun
#include <algorithm>
#include <cstdio>
#include <span>
#include <vector>

#include "base/timer.h"
#include "comm/mpi_env.h"
#include "kernels/threads.h"
#include "run_file.h"
#include "training_run.h"

namespace {

using namespace dew;

/// Seconds of one step.
struct Times {
  double step = 0;
  double norm = 0;    ///< norm of the gradient and its check
  double update = 0;  ///< optimizer, and the average where there is one
  double log = 0;
};

Times bare_step(bench::TrainingRun& run, std::int64_t step) {
  const double begin = steady_seconds();
  const StepData data = run.feed.step(step - 1, run.engine.token_placements(), run.stream);
  run.engine.gradients(data.microbatches);
  const double computed = steady_seconds();
  run.engine.update(step, rate_of(run.setup->spec, step), 1);
  const double end = steady_seconds();
  return {.step = end - begin, .update = end - computed};
}

Times full_step(bench::TrainingRun& run, bench::StepLog& log, std::int64_t step) {
  const double begin = steady_seconds();
  const StepData data = run.feed.step(step - 1, run.engine.token_placements(), run.stream);
  const double loss = run.engine.gradients(data.microbatches);
  const double computed = steady_seconds();
  const StepSums sums = sum_step(run.engine.store(), loss, {}, run.setup->ranks);
  const std::string fault = non_finite(run.engine.store(), sums);
  DEW_CHECK(fault.empty(), fault);
  const double summed = steady_seconds();
  apply_update(run.engine, run.setup->spec, step, sums);
  const double updated = steady_seconds();
  log.write(step, updated - begin, sums, run.allocator);
  const double end = steady_seconds();
  return {.step = end - begin, .norm = summed - computed, .update = updated - summed, .log = end - updated};
}

double median(const std::vector<Times>& times, double Times::*part) {
  std::vector<double> values;
  for (const Times& t : times) values.push_back(t.*part);
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double best(const std::vector<Times>& times, double Times::*part) {
  double least = times.front().*part;
  for (const Times& t : times) least = std::min(least, t.*part);
  return least;
}

void report(const std::vector<Times>& bare, const std::vector<Times>& full) {
  for (const auto& [name, pick] : {std::pair{"best", &best}, std::pair{"median", &median}}) {
    const double with = pick(full, &Times::step), without = pick(bare, &Times::step);
    const double norm = pick(full, &Times::norm), log = pick(full, &Times::log);
    const double average = pick(full, &Times::update) - pick(bare, &Times::update);
    std::printf(
        "%-6s step_ms with %.3f without %.3f share %.4f  parts_ms norm_and_clip %.3f ema %.3f log %.3f "
        "share %.4f\n",
        name, 1e3 * with, 1e3 * without, (with - without) / with, 1e3 * norm, 1e3 * average, 1e3 * log,
        (norm + average + log) / with);
  }
}

void run(const Options& options, const MpiEnv& mpi) {
  bench::TrainingRun none(bench::read_config(options, {"ema=null", "optimizer.clip=null"}), mpi.world());
  bench::TrainingRun all(bench::read_config(options, {"ema=0.999", "optimizer.clip=1.0"}), mpi.world());
  bench::StepLog log(*all.setup);
  constexpr int kWarmUp = 2;
  std::vector<Times> bare, full;
  for (std::int64_t step = 1; step <= kWarmUp + options.count; ++step) {
    const Times without = bare_step(none, step), with = full_step(all, log, step);
    if (step <= kWarmUp) continue;
    bare.push_back(without);
    full.push_back(with);
  }
  if (all.setup->ranks.rank() == 0) report(bare, full);
}

}  // namespace

int main(int argc, char** argv) {
  const HostResources host = prepare_launch();
  const MpiEnv mpi(argc, argv);
  kernels::set_threads(host.threads);
  try {
    run(parse_options({argv, static_cast<std::size_t>(argc)}, "--rounds", 20), mpi);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_extras: %s\n", error.what());
    mpi.abort(1);
  }
  return 0;
}
