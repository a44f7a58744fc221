#include "autograd/remat.h"

#include <utility>

namespace dew {
namespace {

/// What a replay needs of the scope it left; the referents outlive every tape.
struct Replay {
  const Mesh* mesh;
  const RematPolicy* policy;
  RopeTables* rope_tables;
  const SequencePolicy* sequence;
  Body body;
  std::vector<Tensor> in;
  std::vector<Placements> placements;

  void operator()(Backward& g) const {
    Tape tape(g.stream(), g.bound());
    Scope scope{tape, *mesh, *policy, *rope_tables, *sequence};
    Vars inputs;
    for (std::size_t i = 0; i < in.size(); ++i)
      inputs.push_back(g.wants(static_cast<int>(i)) ? tape.input(in[i], placements[i])
                                                    : Var{in[i], placements[i], -1});
    const Vars outs = body(scope, inputs);
    std::vector<Seed> seeds;
    for (std::size_t i = 0; i < outs.size(); ++i) seeds.push_back({outs[i], g.out(static_cast<int>(i))});
    tape.backward(seeds, g.bound(), WeightMode::kNow, nullptr);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Tensor gradient = tape.take_gradient(inputs[i]);
      if (gradient.defined()) g.pass(static_cast<int>(i), gradient);
    }
  }
};

}  // namespace

Vars remat(Scope& scope, std::string_view site, const Vars& in, const Body& body) {
  if (!scope.tape.differentiates() || !scope.policy.drops(site)) return body(scope, in);
  ParamViews without_gradients = scope.tape.bound();
  without_gradients.gradients = nullptr;
  Tape first(scope.tape.stream(), without_gradients);
  Scope inner = scope.on(first);
  Vars constants = in;
  for (Var& var : constants) var.slot = -1;
  const Vars outs = body(inner, constants);
  Replay replay{&scope.mesh, &scope.policy, &scope.rope_tables, &scope.sequence, body, {}, {}};
  for (const Var& var : in) {
    replay.in.push_back(var.value);
    replay.placements.push_back(var.placements);
  }
  std::vector<Tensor> values;
  Placements placements;
  for (const Var& out : outs) {
    values.push_back(out.value);
    placements = out.placements;
  }
  for (const Var& out : outs) DEW_CHECK(out.placements == placements, site, out.placements.str());
  return scope.tape.record(site, in, std::move(values), placements, std::move(replay));
}

}  // namespace dew
