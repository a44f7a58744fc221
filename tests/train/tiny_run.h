// A small run on the ranks of a test: description, mesh, engine and data, built as the trainer builds them.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "support/mpi_world.h"
#include "train/run_setup.h"
#include "train/step.h"

namespace dew::testing {

/// A decoder of 2 layers in f64 on generated sentences, batch 24 x 24 (rows, positions and heads divide by 2,
/// 3 and 4; key/value heads by 2 and 4; the vocabulary by none; 2 microbatches), every parameter sharded;
/// `overrides` are `key.path=value`.
inline std::unique_ptr<RunSetup> tiny_setup(const std::vector<std::string>& overrides,
                                            const HostGroup& ranks = world()) {
  Config config = Config::from_text(
      "run: {steps: 20, seed: 3}\n"
      "layout: {min_shard: 1}\n"
      "precision: {compute: f64, master: f64, reduce: f64}\n"
      "model: {family: decoder, layers: 2, width: 24, heads: 12, kv_heads: 4, head_width: 2, mlp: 36, vocab: "
      "257, "
      "head_chunk: 7}\n"
      "data: {sentences: 300, seq_len: 24, batch: 24, validation: 0.1}\n"
      "pipeline: {microbatches: 2}\n"
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

/// The extents of one mesh as overrides.
inline std::vector<std::string> mesh_of(const std::map<std::string, int>& extents) {
  std::vector<std::string> overrides{"mesh.replica=1"};
  for (const auto& [axis, extent] : extents)
    overrides.push_back("mesh." + axis + "=" + std::to_string(extent));
  return overrides;
}

/// Every product R x F of the test's ranks for two axes.
inline std::vector<std::vector<std::string>> products(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::string>> all;
  for (int extent = 1; extent <= world().size(); ++extent)
    if (world().size() % extent == 0) all.push_back(mesh_of({{a, extent}, {b, world().size() / extent}}));
  return all;
}

/// Every replica x fsdp of the test's ranks.
inline std::vector<std::vector<std::string>> layouts() {
  return products("replica", "fsdp");
}

/// Every axis alone on all ranks of the test, and replica x fsdp.
inline std::vector<std::vector<std::string>> axis_layouts() {
  std::vector<std::vector<std::string>> all = layouts();
  if (world().size() == 1) return all;
  for (const char* axis : {"stage", "expert", "sequence", "tensor"})
    all.push_back(mesh_of({{axis, world().size()}}));
  return all;
}

/// Every axis alone, and every pair of axes, on all ranks of the test. Each mesh once.
inline std::vector<std::vector<std::string>> all_layouts() {
  const std::array<std::string, 6> axes{"replica", "stage", "fsdp", "expert", "sequence", "tensor"};
  std::vector<std::vector<std::string>> all;
  const int size = world().size();
  for (std::size_t a = 0; a < axes.size(); ++a) {
    all.push_back(mesh_of({{axes[a], size}}));
    for (std::size_t b = a + 1; b < axes.size(); ++b)
      for (int extent = 2; extent < size; ++extent)
        if (size % extent == 0) all.push_back(mesh_of({{axes[a], extent}, {axes[b], size / extent}}));
  }
  return all;
}

/// Whether a layout of `mesh_of` has several stages.
inline bool is_staged(const std::vector<std::string>& layout) {
  return std::any_of(layout.begin(), layout.end(), [](const std::string& assignment) {
    return assignment.starts_with("mesh.stage=") && assignment != "mesh.stage=1";
  });
}

/// One list of overrides after another.
inline std::vector<std::string> join(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace dew::testing
