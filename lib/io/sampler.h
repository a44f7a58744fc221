// Which window a global row of training reads. Pure functions of (rows, seed, row): no state, the same at any
// rank count.
#pragma once

#include <cstdint>

namespace dew {

/// Windows of seq_len + 1 ids that start seq_len apart.
inline std::int64_t window_count(std::int64_t tokens, std::int64_t seq_len) {
  return tokens > seq_len ? (tokens - 1) / seq_len : 0;
}

class Sampler {
 public:
  /// `windows` >= 1 windows an epoch.
  Sampler(std::int64_t windows, std::uint64_t seed);

  struct Place {
    std::int64_t epoch = 0, window = 0;
  };
  /// The window that the k-th row of all training reads (k counted over steps, across the ends of epochs).
  /// Within an epoch each window comes once, in an order that changes from epoch to epoch: a stateless
  /// permutation (a balanced Feistel network on the next even power of two, walked until it falls inside).
  Place at(std::int64_t global_row) const;

 private:
  std::int64_t windows_;
  std::uint64_t key_;  ///< of the generator, from the seed
  int half_bits_ = 1;  ///< bits of each half of the Feistel network
};

/// The rows of one rank in one microbatch of a step: data ranks own contiguous rows of the global batch,
/// microbatches contiguous parts of those.
struct RowSplit {
  std::int64_t batch = 0;            ///< global rows a step
  std::int64_t rank = 0, ranks = 1;  ///< among the row ranks
  std::int64_t microbatches = 1;
  /// The step at which this split began and the global row it began with: other batch sizes before it leave
  /// their mark there.
  std::int64_t first_step = 0, first_row = 0;

  std::int64_t rows() const { return batch / (ranks * microbatches); }
  /// Global row with which a step (from first_step on) begins, over all ranks.
  std::int64_t start(std::int64_t step) const { return first_row + (step - first_step) * batch; }
  /// Global row of the first row of this rank's `microbatch` in a step.
  std::int64_t first(std::int64_t step, std::int64_t microbatch) const {
    return start(step) + rank * (batch / ranks) + microbatch * rows();
  }
};

}  // namespace dew
