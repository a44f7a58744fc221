#include "autograd/sequence_timing.h"

#include <algorithm>
#include <array>

#include "autograd/sequence_attention.h"
#include "base/timer.h"
#include "kernels/pointwise.h"
#include "kernels/random.h"

namespace dew {
namespace {

constexpr int kRounds = 3;

/// An attention call has no parameters.
class NoGradients final : public GradientSink {
 public:
  Target gradient(ParamRef) override { throw Error("an attention call has no parameters"); }
};

struct Trial {
  SequenceCall call;
  Tensor q, k, v, d_o;
};

Tensor random(const Shape& shape, std::uint64_t key, DType dtype, Stream& stream) {
  Tensor normal = Tensor::empty(shape, real_of(dtype), stream, Owner::kBuffers);
  kernels::fill_normal(stream, key, 0, 1, normal.range(0, normal.numel()));
  if (dtype == real_of(dtype)) return normal;
  Tensor x = Tensor::empty(shape, dtype, stream, Owner::kBuffers);
  kernels::cast(stream, normal, x);
  return x;
}

void run(const Trial& trial, SequenceExchange exchange, const Mesh& mesh, Stream& stream) {
  const int rank = mesh.coord(Axis::kSequence);
  NoGradients none;
  ParamViews views;
  views.gradients = &none;
  Tape tape(stream, views);
  const RematPolicy keep_all;
  RopeTables tables;
  SequencePolicy policy;
  policy.named = exchange;
  Scope scope{tape, mesh, keep_all, tables, policy};
  const Placements placements = Placements::sharded({Axis::kSequence});
  const kernels::AttentionMask mask{trial.call.causal, trial.call.window, rank * trial.q.dim(1),
                                    rank * trial.k.dim(1)};
  const Var o = sequence_attention(scope, tape.input(trial.q, placements), tape.input(trial.k, placements),
                                   tape.input(trial.v, placements), mask);
  const std::array<Seed, 1> seeds{{{o, trial.d_o}}};
  tape.backward(seeds, views, WeightMode::kNow, nullptr);
}

/// Seconds of the slowest rank.
double agreed(double seconds, const Mesh& mesh, Stream& stream) {
  Communicator& world = mesh.world();
  const Tensor all = Tensor::empty({world.size()}, DType::kF64, stream, Owner::kBuffers);
  const Tensor own = all.range(world.rank(), world.rank() + 1);
  if (own.raw() != nullptr) *own.data<double>() = seconds;
  const Transfer transfer{own, all};
  world.all_gather({&transfer, 1}, stream).wait(stream);
  if (all.raw() == nullptr) return 0;
  return *std::max_element(all.data<double>(), all.data<double>() + all.numel());
}

}  // namespace

std::map<SequenceExchange, double> exchange_seconds(const SequenceCall& call, const Mesh& mesh, DType dtype,
                                                    int rounds, Stream& stream) {
  const Shape queries{call.samples, call.queries / call.ranks, call.heads, call.head_width},
      keys{call.samples, call.keys / call.ranks, call.kv_heads, call.head_width};
  const Trial trial{call, random(queries, 1, dtype, stream), random(keys, 2, dtype, stream),
                    random(keys, 3, dtype, stream), random(queries, 4, dtype, stream)};
  std::map<SequenceExchange, double> seconds;
  for (SequenceExchange exchange : {SequenceExchange::kAllToAll, SequenceExchange::kGather,
                                    SequenceExchange::kBand, SequenceExchange::kRing}) {
    if (!obstacle(exchange, call).empty()) continue;
    if (call.ranks == 1 && !seconds.empty()) break;  // on one rank all are plain attention
    run(trial, exchange, mesh, stream);
    agreed(0, mesh, stream);  // everybody starts together
    const double begin = steady_seconds();
    for (int round = 0; round < rounds; ++round) run(trial, exchange, mesh, stream);
    seconds[exchange] = agreed(steady_seconds() - begin, mesh, stream) / rounds;
  }
  return seconds;
}

std::map<SequenceCall, SequenceExchange> time_exchanges(const std::set<SequenceCall>& calls, const Mesh& mesh,
                                                        DType dtype, Stream& stream) {
  std::map<SequenceCall, SequenceExchange> fastest;
  for (const SequenceCall& call : calls) {
    if (call.ranks == 1) continue;
    const auto seconds = exchange_seconds(call, mesh, dtype, kRounds, stream);
    const auto least = std::min_element(seconds.begin(), seconds.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
    if (least != seconds.end()) fastest[call] = least->first;
  }
  return fastest;
}

}  // namespace dew
