#include "io/batch.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "base/check.h"

namespace dew {
namespace {

constexpr std::int64_t kPaddingRow = -1;
constexpr std::int32_t kNoTarget = -1;

std::int64_t windows_in(const TokenSource& source, Split split, std::int64_t seq_len) {
  DEW_CHECK(seq_len >= 1, seq_len);
  return window_count(source.tokens(split), seq_len);
}

/// The windows of a split of which there must be some.
std::int64_t needed_windows(const TokenSource& source, Split split, std::int64_t seq_len) {
  const std::int64_t windows = windows_in(source, split, seq_len);
  if (windows >= 1) return windows;
  const bool train = split == Split::kTrain;
  std::string message = std::string("data: the ") + (train ? "training" : "validation") + " split of " +
                        source.describe() + " holds " + std::to_string(source.tokens(split)) +
                        " tokens, and one window of data.seq_len " + std::to_string(seq_len) + " takes " +
                        std::to_string(seq_len + 1);
  if (!train) message += "; accepted: a whole window, or no validation token at all";
  throw ConfigError(message);
}

}  // namespace

Batch make_room(std::int64_t rows, PositionRange part, std::int64_t seq_len, Pack pack, Stream& stream) {
  const auto integers = [&stream](const Shape& of) {
    return Tensor::empty(of, DType::kI32, stream, Owner::kBuffers);
  };
  Batch batch;
  for (Tensor* each : {&batch.tokens, &batch.targets, &batch.positions})
    *each = integers({rows, part.length});
  if (pack == Pack::kDocuments) batch.starts = integers({rows, seq_len});
  batch.first_position = part.begin;
  batch.valid = rows * part.length;
  return batch;
}

BatchReader::BatchReader(const TokenSource& source, std::int64_t seq_len, std::uint64_t seed, RowSplit split,
                         PositionRange part, Pack pack)
    : source_(source),
      seq_len_(seq_len),
      sampler_(needed_windows(source, Split::kTrain, seq_len), seed),
      split_(split),
      part_(part) {
  DEW_CHECK(split.batch >= 1 && split.ranks >= 1 && split.microbatches >= 1, split.batch, split.ranks,
            split.microbatches);
  DEW_CHECK(split.batch % (split.ranks * split.microbatches) == 0, split.batch, split.ranks,
            split.microbatches);
  DEW_CHECK(split.first_step >= 0 && split.first_row >= 0, split.first_step, split.first_row);
  DEW_CHECK(split.rank >= 0 && split.rank < split.ranks, split.rank, split.ranks);
  DEW_CHECK(part.begin >= 0 && part.length >= 0 && part.begin + part.length <= seq_len, part.begin,
            part.length, seq_len);
  if (source.tokens(Split::kValidation) > 0) needed_windows(source, Split::kValidation, seq_len);
  if (pack == Pack::kWindows) return;
  eos_ = source.eos_id();
  if (!eos_)
    throw ConfigError("data.pack: documents needs an id that ends a document, and " + source.describe() +
                      " names none (eos_id of meta.json); accepted: windows");
}

Batch BatchReader::train(std::int64_t step, std::int64_t microbatch, Stream& stream) const {
  Batch batch = room(stream);
  if (!stream.device().is_meta()) read_train(step, microbatch, batch);
  return batch;
}

void BatchReader::read_train(std::int64_t step, std::int64_t microbatch, Batch& batch) const {
  DEW_CHECK(step >= split_.first_step && microbatch >= 0 && microbatch < split_.microbatches, step,
            microbatch);
  const std::int64_t first = split_.first(step, microbatch);
  std::vector<std::int64_t> windows(static_cast<std::size_t>(split_.rows()));
  for (std::size_t i = 0; i < windows.size(); ++i)
    windows[i] = sampler_.at(first + static_cast<std::int64_t>(i)).window;
  read(Split::kTrain, windows, batch);
  batch.first_row = first - split_.start(step);
  hint_train(step + 1, microbatch);
}

void BatchReader::hint_train(std::int64_t step, std::int64_t microbatch) const {
  const std::int64_t first = split_.first(step, microbatch);
  for (std::int64_t row = first; row < first + split_.rows(); ++row) {
    const Range ids = ids_of(sampler_.at(row).window);
    source_.will_need(Split::kTrain, ids.begin, ids.size());
  }
}

Batch BatchReader::validation(std::int64_t index, Stream& stream) const {
  DEW_CHECK(index >= 0 && index < validation_batches(), index, validation_batches());
  const std::int64_t rows = split_.rows();
  const std::int64_t first = (index * split_.ranks + split_.rank) * rows;
  const std::int64_t count = validation_windows();
  std::vector<std::int64_t> windows(static_cast<std::size_t>(rows));
  for (std::int64_t i = 0; i < rows; ++i) {
    windows[static_cast<std::size_t>(i)] = first + i < count ? first + i : kPaddingRow;
  }
  Batch batch = room(stream);
  if (!stream.device().is_meta()) read(Split::kValidation, windows, batch);
  return batch;
}

std::int64_t BatchReader::validation_batches() const {
  const std::int64_t rows = split_.ranks * split_.rows();
  return (validation_windows() + rows - 1) / rows;
}

std::int64_t BatchReader::train_windows() const {
  return windows_in(source_, Split::kTrain, seq_len_);
}

std::int64_t BatchReader::validation_windows() const {
  return windows_in(source_, Split::kValidation, seq_len_);
}

Sampler::Place BatchReader::position(std::int64_t step) const {
  DEW_CHECK(step >= split_.first_step, step, split_.first_step);
  const std::int64_t row = split_.start(step), windows = train_windows();
  return {row / windows, row % windows};
}

Range BatchReader::ids_of(std::int64_t window) const {
  const std::int64_t first = window * seq_len_, begin = eos_ ? 0 : part_.begin;
  return {first + begin, first + (eos_ ? seq_len_ : part_.begin + part_.length) + 1};
}

void BatchReader::read(Split split, std::span<const std::int64_t> windows, Batch& batch) const {
  batch.valid = 0;
  if (part_.length == 0) return;
  for (std::size_t row = 0; row < windows.size(); ++row)
    batch.valid += read_row(split, windows[row], static_cast<std::int64_t>(row), batch);
}

std::int64_t BatchReader::read_row(Split split, std::int64_t window, std::int64_t row,
                                   const Batch& batch) const {
  const std::int64_t length = part_.length;
  std::int32_t *tokens = batch.tokens.data<std::int32_t>() + row * length,
               *targets = batch.targets.data<std::int32_t>() + row * length,
               *positions = batch.positions.data<std::int32_t>() + row * length;
  std::int32_t* starts = eos_ ? batch.starts.data<std::int32_t>() + row * seq_len_ : nullptr;
  std::iota(positions, positions + length, static_cast<std::int32_t>(part_.begin));
  if (window == kPaddingRow) {
    std::fill_n(tokens, length, 0);
    std::fill_n(targets, length, kNoTarget);
    if (starts != nullptr) std::fill_n(starts, seq_len_, 0);
    return 0;
  }
  const Range range = ids_of(window);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(range.size()));
  source_.read(split, range.begin, ids);
  const std::int32_t* own = ids.data() + (window * seq_len_ + part_.begin - range.begin);
  std::vector<std::uint8_t> counts(static_cast<std::size_t>(length));
  source_.read_mask(split, window * seq_len_ + part_.begin + 1, counts);
  std::copy_n(own, length, tokens);
  std::int64_t valid = 0;
  for (std::int64_t i = 0; i < length; ++i) {
    const bool target = counts[static_cast<std::size_t>(i)] != 0 && own[i] != eos_;
    targets[i] = target ? own[i + 1] : kNoTarget;
    valid += target ? 1 : 0;
  }
  if (starts == nullptr) return valid;
  std::int32_t start = 0;
  for (std::int64_t i = 0; i < seq_len_; ++i) {
    if (i > 0 && ids[static_cast<std::size_t>(i - 1)] == *eos_) start = static_cast<std::int32_t>(i);
    starts[i] = start;
  }
  for (std::int64_t i = 0; i < length; ++i) positions[i] -= starts[part_.begin + i];
  return valid;
}

}  // namespace dew
