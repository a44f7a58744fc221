#include "train/leaf_comparison.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "tensor/copy.h"
#include "train/gathered_state.h"
#include "train/step.h"

namespace dew {
namespace {

using Leaves = std::vector<std::vector<double>>;

constexpr double kF64Bound = 1e-11;  // relative, in L2: rounding of a few thousand sums in another order
constexpr double kFactor = 4;        // times the distance of one rank in the same precision
// Relative, where one rank happens to be nearly exact.
struct Floors {
  double leaf, scalar;
};
constexpr Floors kF32Floors{1e-7, 1e-6}, kBf16Floors{0x1p-9, 0x1p-9};

/// A spec for the same steps whole on one rank: one microbatch, everything kept.
RunSpec one_rank_spec(const RunSpec& spec, bool exact) {
  RunSpec whole = spec;
  whole.accumulate = 1;
  whole.recompute = {};
  if (exact) whole.precision = {DType::kF64, DType::kF64, DType::kF64};
  return whole;
}

/// The run whole on this process alone.
class OneRank {
 public:
  /// `exact`: everything in f64, whatever the run's precision.
  OneRank(const RunSetup& setup, bool exact)
      : spec_(one_rank_spec(setup.spec, exact)),
        group_(HostGroup::alone()),
        allocator_(Device{}),
        stream_(allocator_),
        mesh_(group_, MeshShape{}, {}),
        cut_(whole_chain(static_cast<int>(setup.model.chain.size()))),
        engine_({spec_, setup.model, setup.rules, keep_all_, cut_, rule_}, mesh_, stream_),
        feed_(*setup.source, spec_, mesh_, group_) {}

  Engine& engine() { return engine_; }
  const RunSpec& spec() const { return spec_; }

  double gradients(std::int64_t step) {
    const StepData data = feed_.step(step, engine_.token_placements(), stream_);
    return engine_.gradients(data.microbatches);
  }
  double norm() {
    const StepSums sums = sum_step(engine_.store(), 0, {}, group_);
    return sums.grad_norm;
  }
  Leaves gradient_leaves() {
    return gather_whole(engine_.store(), group_, [](const ShardedParameter& p) { return p.gradient; });
  }
  Leaves weights() {
    return gather_whole(engine_.store(), group_, [](const ShardedParameter& p) { return p.master; });
  }
  void set_gradients(const Leaves& leaves) {
    set(leaves, [](const ShardedParameter& p) { return p.gradient; });
  }
  void set_weights(const Leaves& leaves) {
    set(leaves, [](const ShardedParameter& p) { return p.master; });
  }

 private:
  template <class Local>
  void set(const Leaves& leaves, const Local& local) {
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const Tensor target = local(engine_.store().params()[i]);
      visit_float(target.dtype(), [&](auto zero) {
        using T = decltype(zero);
        std::transform(leaves[i].begin(), leaves[i].end(), target.template data<T>(),
                       [](double x) { return static_cast<T>(x); });
      });
    }
  }

  RunSpec spec_;
  RematPolicy keep_all_;
  HostGroup group_;
  Allocator allocator_;
  Stream stream_;
  Mesh mesh_;
  ChainCut cut_;
  SequencePolicy rule_;
  Engine engine_;
  DataFeed feed_;
};

double l2(const std::vector<double>& x) {
  double sum = 0;
  for (double value : x) sum += value * value;
  return std::sqrt(sum);
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

/// Number of elements whose bits differ; both hold the same dtype widened to f64.
double differing(const std::vector<double>& a, const std::vector<double>& b) {
  double count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] == b[i] ? 0 : 1;
  return count;
}

/// L2 over all leaves.
double whole_distance(const Leaves& a, const Leaves& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += distance(a[i], b[i]) * distance(a[i], b[i]);
  return std::sqrt(sum);
}

/// Compares on rank 0 and collects the leaves.
class Judge {
 public:
  explicit Judge(const RunSetup& setup)
      : one_(setup, false), floors_(setup.spec.precision.compute == DType::kBf16 ? kBf16Floors : kF32Floors) {
    const PrecisionSection& formats = setup.spec.precision;
    const bool all_f64 =
        formats.compute == DType::kF64 && formats.master == DType::kF64 && formats.reduce == DType::kF64;
    if (!all_f64) exact_.emplace(setup, true);
    one_.engine().initialize();
    for (const ShardedParameter& p : one_.engine().store().params()) names_.push_back(p.spec.name);
  }

  void initial(const Leaves& weights, Comparison& result) {
    const Leaves whole = one_.weights();
    for (std::size_t i = 0; i < whole.size(); ++i)
      result.leaves.push_back({0, "initial", names_[i], differing(weights[i], whole[i]), l2(whole[i]), 0});
  }

  void step(std::int64_t step, const StepSums& sums, const Leaves& gradients, Comparison& result) {
    if (exact_) exact_->set_weights(one_.weights());
    const double loss = one_.gradients(step - 1), norm = one_.norm();
    const Leaves whole = one_.gradient_leaves();
    double exact_loss = loss, exact_norm = norm;
    Leaves exact;
    if (exact_) {
      exact_loss = exact_->gradients(step - 1);
      exact_norm = exact_->norm();
      exact = exact_->gradient_leaves();
      exact_->engine().store().weights_changed();
    }
    // How far one rank is from the exact gradient as a whole: a leaf or the norm of it may be nearer by
    // chance.
    const double away = exact_ ? whole_distance(whole, exact) / exact_norm : 0;
    scalar(step, "loss", sums.loss, loss, exact_loss, floors_.scalar, result);
    scalar(step, "grad_norm", sums.grad_norm, norm, exact_norm, std::max(floors_.scalar, kFactor * away),
           result);
    const double floor = std::max(floors_.leaf, kFactor * away);
    double elements = 0;
    for (const auto& leaf : whole) elements += static_cast<double>(leaf.size());
    for (std::size_t i = 0; i < whole.size(); ++i) {
      const auto& truth = exact_ ? exact[i] : whole[i];
      const double share = std::sqrt(static_cast<double>(truth.size()) / elements);
      const double scale = std::max(l2(truth), exact_norm * share);
      const double bound =
          exact_ ? std::max(kFactor * distance(whole[i], truth), floor * scale) : kF64Bound * scale;
      result.leaves.push_back({step, "gradient", names_[i], distance(gradients[i], truth), l2(truth), bound});
    }
  }

  void update(std::int64_t step, const StepSums& sums, const Leaves& gradients, const Leaves& weights,
              Comparison& result) {
    one_.set_gradients(gradients);
    apply_update(one_.engine(), one_.spec(), step, sums);
    const Leaves whole = one_.weights();
    for (std::size_t i = 0; i < whole.size(); ++i)
      result.leaves.push_back({step, "update", names_[i], differing(weights[i], whole[i]), l2(whole[i]), 0});
  }

 private:
  void scalar(std::int64_t step, const char* kind, double mine, double one, double exact, double floor,
              Comparison& result) {
    const double bound = exact_ ? std::max(kFactor * std::abs(one - exact), floor * std::abs(exact))
                                : kF64Bound * std::abs(exact);
    result.leaves.push_back({step, kind, "", std::abs(mine - exact), std::abs(exact), bound});
  }

  OneRank one_;
  Floors floors_;
  std::optional<OneRank> exact_;
  std::vector<std::string> names_;
};

}  // namespace

bool Comparison::passed() const {
  return !leaves.empty() &&
         std::all_of(leaves.begin(), leaves.end(), [](const auto& leaf) { return leaf.passed(); });
}

std::string Comparison::table(std::size_t rows) const {
  std::vector<const LeafResult*> order;
  for (const LeafResult& leaf : leaves) order.push_back(&leaf);
  const auto badness = [](const LeafResult& leaf) {
    if (std::isnan(leaf.difference)) return std::numeric_limits<double>::infinity();
    return leaf.bound > 0 ? leaf.difference / leaf.bound : leaf.difference;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&badness](const auto* a, const auto* b) { return badness(*a) > badness(*b); });
  std::string text =
      format("%-4s %-10s %-32s %12s %12s %12s\n", "step", "what", "leaf", "difference", "bound", "size");
  for (std::size_t i = 0; i < std::min(rows, order.size()); ++i) {
    const LeafResult& leaf = *order[i];
    text += format("%-4lld %-10s %-32s %12.3e %12.3e %12.3e%s\n", static_cast<long long>(leaf.step),
                   leaf.kind.c_str(), leaf.name.c_str(), leaf.difference, leaf.bound, leaf.scale,
                   leaf.passed() ? "" : "  FAILED");
  }
  const auto failed =
      std::count_if(leaves.begin(), leaves.end(), [](const auto& leaf) { return !leaf.passed(); });
  text += format("%zu leaves compared, %lld failed", leaves.size(), static_cast<long long>(failed));
  return text;
}

Comparison compare_with_one_rank(const RunSetup& setup, std::int64_t steps) {
  const HostGroup& ranks = setup.ranks;
  Allocator allocator(Device{});
  Stream stream(allocator);
  const Mesh mesh(ranks, setup.mesh, setup.groups);
  stream.set_progress([&mesh] { mesh.poll(); });
  const SequencePolicy sequence = settled_policy(setup, mesh, stream);
  Engine engine(setup.parts(sequence), mesh, stream);
  const DataFeed feed(*setup.source, setup.spec, mesh, ranks);
  engine.initialize();
  const bool judges = ranks.rank() == 0;
  std::optional<Judge> judge;
  if (judges) judge.emplace(setup);
  Comparison result;
  const auto gradient = [](const ShardedParameter& p) { return p.gradient; };
  const auto master = [](const ShardedParameter& p) { return p.master; };
  const Leaves start = gather_whole(engine.store(), ranks, master);
  if (judges) judge->initial(start, result);
  for (std::int64_t step = 1; step <= steps; ++step) {
    const StepSums sums = run_gradients(engine, feed, step, {}, ranks, stream).sums;
    const Leaves gradients = gather_whole(engine.store(), ranks, gradient);
    apply_update(engine, setup.spec, step, sums);
    mesh.check_same_calls(ranks);
    const Leaves weights = gather_whole(engine.store(), ranks, master);
    if (!judges) continue;
    judge->step(step, sums, gradients, result);
    judge->update(step, sums, gradients, weights, result);
  }
  std::int64_t passed = !judges || result.passed() ? 1 : 0;
  ranks.min({&passed, 1});
  if (!judges) result.leaves.push_back({steps, "verdict", "", passed == 1 ? 0.0 : 1.0, 0, 0});
  return result;
}

}  // namespace dew
