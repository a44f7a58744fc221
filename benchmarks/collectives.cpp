// Collectives over all ranks of the job, by size.
//
// Definitions, for n ranks and S bytes of the whole tensor (the gathered one, or the one that is reduced):
//   time    mean over the repetitions of start and wait, the slowest rank
//   algbw   S / time
//   busbw   algbw x (n - 1) / n for all_gather and reduce_scatter, x 2 (n - 1) / n for all_reduce: what one
//   rank's link
//           would carry each way in the best algorithm, so that it compares with the link whatever n is
//
// mpirun -np N bench_collectives [largest MiB, default 16]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "base/check.h"
#include "base/text.h"
#include "base/timer.h"
#include "comm/mesh.h"
#include "comm/mpi_env.h"
#include "tensor/copy.h"

namespace {

using namespace dew;

constexpr double kSecondsPerRow = 0.3;
constexpr double kBytesPerGiB = 1024.0 * 1024 * 1024;

// Mean seconds of one call, the slowest rank's.
double measure(const HostGroup& world, const std::function<void()>& call) {
  call();
  world.barrier();
  double start = steady_seconds();
  call();
  std::int64_t repetitions = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(kSecondsPerRow / (steady_seconds() - start)), 3, 1000);
  world.min({&repetitions, 1});
  world.barrier();
  start = steady_seconds();
  for (std::int64_t i = 0; i < repetitions; ++i) call();
  auto nanoseconds = static_cast<std::int64_t>((steady_seconds() - start) * 1e9);
  world.max({&nanoseconds, 1});
  return static_cast<double>(nanoseconds) * 1e-9 / static_cast<double>(repetitions);
}

void print_row(const HostGroup& world, const char* name, std::size_t bytes, double seconds,
               double bus_share) {
  if (world.rank() != 0) return;
  const double algbw = static_cast<double>(bytes) / seconds / kBytesPerGiB;
  std::printf("%-15s %10s %10.3f ms %8.2f GiB/s algbw %8.2f GiB/s busbw\n", name,
              format_bytes(static_cast<double>(bytes)).c_str(), seconds * 1e3, algbw, algbw * bus_share);
  std::fflush(stdout);
}

void run(const MpiEnv& mpi, std::int64_t most_bytes) {
  const HostGroup& world = mpi.world();
  const int n = world.size();
  Allocator pool{Device{}};
  Stream stream(pool);
  MpiProgress progress;
  const auto group = make_mpi_communicator("world", world.duplicate(), progress);
  const double share = (n - 1.0) / n;
  for (std::int64_t bytes = 4096; bytes <= most_bytes; bytes *= 8) {
    const std::int64_t part = bytes / 4 / n;
    const Tensor whole = Tensor::zeros({part * n}, DType::kF32, stream, Owner::kGathered);
    const Tensor own = Tensor::zeros({part}, DType::kF32, stream, Owner::kWeights);
    const Transfer gather{own, whole}, scatter{whole, own};
    print_row(world, "all_gather", whole.bytes(),
              measure(world,
                      [&] {
                        group->all_gather({&gather, 1}, stream).wait(stream);
                      }),
              share);
    print_row(world, "reduce_scatter", whole.bytes(),
              measure(world,
                      [&] {
                        group->reduce_scatter({&scatter, 1}, stream).wait(stream);
                      }),
              share);
    print_row(world, "all_reduce", whole.bytes(),
              measure(world,
                      [&] {
                        group->all_reduce({&whole, 1}, stream).wait(stream);
                      }),
              2 * share);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const HostResources resources = prepare_launch();
  const MpiEnv mpi(argc, argv);
  try {
    const long mebibytes = argc > 1 ? std::atol(argv[1]) : 16;
    DEW_CHECK(mebibytes > 0, argv[1]);
    if (mpi.world().rank() == 0) {
      std::printf("%d ranks, %d cores%s\n", mpi.world().size(), resources.cores,
                  resources.yields ? ", ranks yield when idle" : "");
    }
    run(mpi, std::int64_t{mebibytes} << 20);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "[rank %d %s] %s\n", mpi.world().rank(), host_name().c_str(), error.what());
    mpi.abort(1);
  }
  return 0;
}
