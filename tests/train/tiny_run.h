// A small run on the ranks of a test: description, mesh, engine and data, built as the trainer builds them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/mpi_world.h"
#include "train/run_setup.h"
#include "train/step.h"

namespace dew::testing {

/// A decoder of 2 layers in f64 on generated sentences, batch 24 x 16 (divides by 1, 2, 3, 4 ranks and 2
/// microbatches), every parameter sharded; `overrides` are `key.path=value`.
inline std::unique_ptr<RunSetup> tiny_setup(const std::vector<std::string>& overrides,
                                            const HostGroup& ranks = world()) {
  Config config = Config::from_text(
      "run: {steps: 20, seed: 3}\n"
      "layout: {min_shard: 1}\n"
      "precision: {compute: f64, master: f64, reduce: f64}\n"
      "model: {family: decoder, layers: 2, width: 24, heads: 4, kv_heads: 2, head_width: 6, mlp: 40, "
      "head_chunk: 7}\n"
      "data: {sentences: 300, seq_len: 16, batch: 24, validation: 0.1}\n"
      "optimizer: {lr: 1e-2, clip: 0.5, weight_decay: 0.1}\n",
      "tiny");
  for (const std::string& assignment : overrides) config.set(assignment);
  return prepare_run(std::move(config), ranks);
}

/// The engine of a setup on its mesh.
class TinyRun {
 public:
  explicit TinyRun(const std::vector<std::string>& overrides, const HostGroup& ranks = world())
      : setup_(tiny_setup(overrides, ranks)),
        allocator_(Device{}),
        stream_(allocator_),
        mesh_(setup_->ranks, setup_->mesh, setup_->groups),
        engine_(setup_->parts(), mesh_, stream_),
        feed_(*setup_->source, setup_->spec, mesh_, setup_->ranks) {
    stream_.set_progress([this] { mesh_.poll(); });
    engine_.initialize();
  }

  RunSetup& setup() { return *setup_; }
  Engine& engine() { return engine_; }
  ParamStore& store() { return engine_.store(); }
  Mesh& mesh() { return mesh_; }
  Stream& stream() { return stream_; }
  Allocator& allocator() { return allocator_; }
  const DataFeed& feed() const { return feed_; }

  /// One whole step; returns its sums.
  StepSums step(std::int64_t step) {
    StepSums sums = run_gradients(engine_, feed_, step, {}, setup_->ranks, stream_).sums;
    apply_update(engine_, setup_->spec, step, sums);
    return sums;
  }

  /// The bits of everything this rank stores: masters and reduced gradients.
  std::vector<double> bits() {
    std::vector<double> values;
    for (const Tensor& arena : {store().master_arena(), store().gradient_arena()})
      visit_float(arena.dtype(), [&](auto zero) {
        const auto* data = arena.template data<decltype(zero)>();
        values.insert(values.end(), data, data + arena.numel());
      });
    return values;
  }

 private:
  std::unique_ptr<RunSetup> setup_;
  Allocator allocator_;
  Stream stream_;
  Mesh mesh_;
  Engine engine_;
  DataFeed feed_;
};

/// "mesh.replica=R" and "mesh.fsdp=F" for every R x F of the test's ranks.
inline std::vector<std::vector<std::string>> layouts() {
  std::vector<std::vector<std::string>> all;
  for (int replica = 1; replica <= world().size(); ++replica)
    if (world().size() % replica == 0)
      all.push_back({"mesh.replica=" + std::to_string(replica),
                     "mesh.fsdp=" + std::to_string(world().size() / replica)});
  return all;
}

/// One list of overrides after another.
inline std::vector<std::string> join(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace dew::testing
