// The tokens of one microbatch on one rank, and the reader that makes them. B rows here, L positions here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "comm/layout.h"
#include "io/sampler.h"
#include "io/token_source.h"
#include "tensor/tensor.h"

namespace dew {

struct Batch {
  Tensor tokens;   ///< [B, L] i32
  Tensor targets;  ///< [B, L] i32: the token after each position; -1 where it does not count
  /// [B, L] i32: where each token stands in its row, or in its document where rows are split into documents.
  Tensor positions;
  /// [B, seq_len] i32, of documents alone: the global position at which the document of each global position
  /// of the row begins. Undefined where rows are not split.
  Tensor starts;
  std::int64_t first_row = 0;       ///< row of the first sample, of the global batch of the step
  std::int64_t first_position = 0;  ///< global position of the first of the L tokens
  std::int64_t valid = 0;           ///< targets that count, on this rank
};

/// What a row of the batch is: a window of the token line as it lies, or the documents in it, of which the
/// eos ends each: attention, positions and targets begin anew behind it (the eos has no target).
enum class Pack : std::uint8_t { kWindows, kDocuments };

/// The part of a window that this rank sees: positions [begin, begin + length) of seq_len.
struct PositionRange {
  std::int64_t begin = 0, length = 0;
};

/// Room for a batch of `rows` rows, of which a rank sees `part` of seq_len positions: nothing is read, and
/// every target counts.
Batch make_room(std::int64_t rows, PositionRange part, std::int64_t seq_len, Pack pack, Stream& stream);

class BatchReader {
 public:
  /// Throws ConfigError (path data) when a split that is needed holds no whole window, or when documents are
  /// asked for of a source without an eos.
  BatchReader(const TokenSource& source, std::int64_t seq_len, std::uint64_t seed, RowSplit split,
              PositionRange part, Pack pack = Pack::kWindows);

  /// The batch of a training step (from the split's first_step on) and microbatch: a pure function of its
  /// arguments. Hints the next step's rows to the source.
  Batch train(std::int64_t step, std::int64_t microbatch, Stream& stream) const;
  /// The same in two halves: room for any training batch, which only the stream's thread may make, and
  /// reading into it, which any one thread may do meanwhile.
  Batch room(Stream& stream) const {
    return make_room(split_.rows(), part_, seq_len_, eos_ ? Pack::kDocuments : Pack::kWindows, stream);
  }
  void read_train(std::int64_t step, std::int64_t microbatch, Batch& batch) const;

  /// Validation rows in file order, B = split.rows() a call and rank as in a training microbatch: evaluation
  /// then needs no more memory than training. The last rows are padded with rows whose targets are all -1, so
  /// that every rank makes the same number of calls. `index` counts calls from 0.
  Batch validation(std::int64_t index, Stream& stream) const;
  /// Calls that read the whole split once: ceil(windows / (ranks * B)).
  std::int64_t validation_batches() const;

  std::int64_t train_windows() const;
  std::int64_t validation_windows() const;
  std::int64_t seq_len() const { return seq_len_; }
  /// The id that ends documents, where rows are split into them.
  std::optional<std::int32_t> eos() const { return eos_; }
  /// Epoch and row within it at which a step (from first_step on) starts: the data position of a checkpoint.
  Sampler::Place position(std::int64_t step) const;

 private:
  void read(Split split, std::span<const std::int64_t> windows,
            Batch& batch) const;  ///< window -1: a padding row
  /// The ids of a window that a row is made of: of documents the whole row's, since they begin where it says
  /// so.
  Range ids_of(std::int64_t window) const;
  /// Fills one row of the batch; returns its targets that count.
  std::int64_t read_row(Split split, std::int64_t window, std::int64_t row, const Batch& batch) const;
  void hint_train(std::int64_t step, std::int64_t microbatch) const;

  const TokenSource& source_;
  std::int64_t seq_len_;
  Sampler sampler_;
  RowSplit split_;
  PositionRange part_;
  std::optional<std::int32_t> eos_;  ///< set where rows are split into documents
};

}  // namespace dew
