// Attention over a sequence axis of all ranks of the job: forward and backward by each exchange, beside
// attention of the whole rows on one rank, and whether the rule chooses the fastest. One row, 8 heads, 2
// key/value heads x 64, f32.
//
// OMP_NUM_THREADS=1 mpirun -np N bench_sequence [smallest T, default 1024 [largest T, default 16384]]
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "autograd/sequence_timing.h"
#include "comm/mesh.h"
#include "comm/mpi_env.h"

namespace {

using namespace dew;

constexpr std::int64_t kWindow = 256;

/// One rank and all ranks take turns; the best counts.
int turns_of(std::int64_t positions) {
  return positions > 4096 ? 1 : 3;
}

/// Rounds that fill about a fifth of a second at the speed of these machines.
int rounds_of(std::int64_t positions) {
  return static_cast<int>(std::max<std::int64_t>(1, 16384 / positions));
}

struct Mask {
  const char* name;
  bool causal;
  std::int64_t window;
};

void keep_best(std::map<SequenceExchange, double>& best, const std::map<SequenceExchange, double>& seconds) {
  for (const auto& [exchange, time] : seconds) {
    const auto [at, is_new] = best.emplace(exchange, time);
    if (!is_new) at->second = std::min(at->second, time);
  }
}

void print_row(const SequenceCall& call, const Mask& mask, double alone,
               const std::map<SequenceExchange, double>& best) {
  const SequenceExchange chosen = SequencePolicy{}.choose(call).exchange;
  SequenceExchange fastest = chosen;
  for (const auto& [exchange, time] : best)
    if (time < best.at(fastest)) fastest = exchange;
  std::printf("%-9s %6lld  one rank %9.2f ms", mask.name, static_cast<long long>(call.queries), alone * 1e3);
  for (SequenceExchange exchange : {SequenceExchange::kAllToAll, SequenceExchange::kGather,
                                    SequenceExchange::kBand, SequenceExchange::kRing}) {
    const auto found = best.find(exchange);
    if (found == best.end())
      std::printf("  %10s   -  ", name_of(exchange).data());
    else
      std::printf("  %10s %5.3f", name_of(exchange).data(), found->second / alone);
  }
  std::printf("  rule %s, fastest %s (%.2f of the rule's)\n", name_of(chosen).data(), name_of(fastest).data(),
              best.at(fastest) / best.at(chosen));
  std::fflush(stdout);
}

void run(const MpiEnv& mpi, std::int64_t smallest, std::int64_t largest) {
  Allocator pool{Device{}};
  Stream stream(pool);
  MeshShape shape;
  shape[Axis::kSequence] = mpi.world().size();
  const Mesh mesh(mpi.world(), shape, {});
  stream.set_progress([&mesh] { mesh.poll(); });
  const HostGroup self = HostGroup::alone();
  const Mesh alone(self, MeshShape{}, {});
  for (const Mask& mask :
       {Mask{"causal", true, 0}, Mask{"window256", true, kWindow}, Mask{"unmasked", false, 0}}) {
    for (std::int64_t positions = smallest; positions <= largest; positions *= 2) {
      SequenceCall call{1, positions, positions, 8, 2, 64, mask.causal, mask.window, shape.size()};
      SequenceCall whole = call;
      whole.ranks = 1;
      std::map<SequenceExchange, double> best, best_alone;
      for (int turn = 0; turn < turns_of(positions); ++turn) {
        if (mpi.world().rank() == 0)
          keep_best(best_alone, exchange_seconds(whole, alone, DType::kF32, rounds_of(positions), stream));
        mpi.world().barrier();
        keep_best(best, exchange_seconds(call, mesh, DType::kF32, rounds_of(positions), stream));
      }
      if (mpi.world().rank() != 0) continue;
      // On one rank every exchange is plain attention.
      double least = best_alone.begin()->second;
      for (const auto& [exchange, time] : best_alone) least = std::min(least, time);
      print_row(call, mask, least, best);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  MpiEnv mpi(argc, argv);
  const auto argument = [&](int i, std::int64_t fallback) {
    return argc > i ? std::strtoll(argv[i], nullptr, 10) : fallback;
  };
  run(mpi, argument(1, 1024), argument(2, 16384));
  return 0;
}
