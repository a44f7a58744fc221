// The comparison of a layout with one rank, leaf by leaf: what `--verify` prints and what the tests judge.
#pragma once

#include <string>
#include <vector>

#include "base/log.h"
#include "train/run_setup.h"

namespace dew {

/// One compared quantity of one step. `difference` and `scale` are L2 norms; `bound` is what the difference
/// may be.
struct LeafResult {
  std::int64_t step = 0;
  std::string kind;  ///< "loss", "grad_norm", "initial", "gradient", "update"
  std::string name;  ///< parameter, or "" for a scalar
  double difference = 0, scale = 0, bound = 0;
  bool passed() const { return difference <= bound; }
};

struct Comparison {
  std::vector<LeafResult> leaves;
  bool passed() const;
  /// A table, worst leaf (difference over bound) first, at most `rows`, then a line that sums up.
  std::string table(std::size_t rows) const;
};

/// Runs `steps` optimizer steps of the setup on its mesh, and on rank 0 the same steps whole on one rank in
/// one microbatch without recomputation, both from the same state: the initial weights must be equal in every
/// bit; then in each step
///  * loss and gradient norm, and each parameter's gradient before the optimizer, by the bounds of one
///  precision: in
///    f64 |difference| <= 1e-11 max(|leaf|, |all| sqrt(elements of the leaf / elements of all)); in f32 the
///    distance from the f64 gradient is at most four times that of one rank in f32;
///  * the update: one rank's optimizer on the layout's own gathered gradient must give the layout's bits.
/// Every step also compares what the ranks of each group have called. Writes nothing. Collective over the
/// setup's ranks; every rank returns the same verdict, rank 0 the leaves.
Comparison compare_with_one_rank(const RunSetup& setup, std::int64_t steps);

}  // namespace dew
