#include "io/batch.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "io/temp_folder.h"

namespace dew {
namespace {

constexpr std::int64_t kValidationBase = 1'000'000;  ///< ids of the validation split start here

/// Token i of training is i, so that a token tells where it was read. Notes what is read and hinted.
class Counting final : public TokenSource {
 public:
  Counting(std::int64_t train, std::int64_t validation) : train_(train), validation_(validation) {}

  std::int64_t vocab_size() const override { return 2 * kValidationBase; }
  std::int64_t tokens(Split split) const override { return split == Split::kTrain ? train_ : validation_; }
  void read(Split split, std::int64_t begin, std::span<std::int32_t> ids) const override {
    const auto count = static_cast<std::int64_t>(ids.size());
    DEW_CHECK(begin >= 0 && begin + count <= tokens(split), begin, count, tokens(split));
    ++reads;
    if (split == Split::kTrain) read_ranges.insert({begin, count});
    const std::int64_t base = split == Split::kTrain ? 0 : kValidationBase;
    for (std::int64_t i = 0; i < count; ++i)
      ids[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(base + begin + i);
  }
  void read_mask(Split, std::int64_t begin, std::span<std::uint8_t> counts) const override {
    for (std::size_t i = 0; i < counts.size(); ++i)
      counts[i] = static_cast<std::uint8_t>((begin + static_cast<std::int64_t>(i)) % masked_every != 0);
  }
  void will_need(Split, std::int64_t begin, std::int64_t count) const override {
    hinted.insert({begin, count});
  }
  std::string describe() const override { return "a counting source"; }

  using Ranges = std::multiset<std::pair<std::int64_t, std::int64_t>>;
  mutable Ranges read_ranges, hinted;
  mutable int reads = 0;
  std::int64_t masked_every = kValidationBase;  ///< ids that are multiples of it do not count as targets

 private:
  std::int64_t train_, validation_;
};

struct Cpu {
  Allocator allocator{Device{}};
  Stream stream{allocator};
};

std::vector<std::int32_t> values(const Tensor& tensor) {
  const std::int32_t* first = tensor.data<std::int32_t>();
  return {first, first + tensor.numel()};
}

PositionRange all_of(std::int64_t seq_len) {
  return {0, seq_len};
}

TEST(BatchReader, MasksTheTargetsThatDoNotCount) {
  Counting source(33 * 20 + 1, 0);
  source.masked_every = 5;
  const BatchReader reader(source, 33, 1, RowSplit{6, 0, 1, 1}, PositionRange{11, 11});
  Cpu cpu;

  const Batch batch = reader.train(0, 0, cpu.stream);
  const std::vector<std::int32_t> tokens = values(batch.tokens), targets = values(batch.targets);
  std::int64_t valid = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::int32_t next = tokens[i] + 1;
    ASSERT_EQ(targets[i], next % 5 == 0 ? -1 : next);
    valid += next % 5 == 0 ? 0 : 1;
  }
  EXPECT_EQ(batch.valid, valid);
  EXPECT_LT(valid, 6 * 11);
}

/// Ids 1 + (place mod 50), and an eos of 0 now and then, two in a row included.
class Documents final : public TokenSource {
 public:
  static std::int32_t id_at(std::int64_t place) {
    return place % 7 == 3 || place % 11 == 4 ? 0 : static_cast<std::int32_t>(1 + place % 50);
  }
  std::int64_t vocab_size() const override { return 51; }
  std::int64_t tokens(Split) const override { return 24 * 10 + 1; }
  std::optional<std::int32_t> eos_id() const override { return 0; }
  void read(Split, std::int64_t begin, std::span<std::int32_t> ids) const override {
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = id_at(begin + static_cast<std::int64_t>(i));
  }
  void will_need(Split, std::int64_t, std::int64_t) const override {}
  std::string describe() const override { return "documents"; }
};

TEST(BatchReader, SplitsRowsIntoDocumentsByTheWholeRow) {
  const Documents source;
  Cpu cpu;
  for (std::int64_t ranks : {1, 2, 3})
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const std::int64_t length = 24 / ranks, begin = rank * length;
      const BatchReader reader(source, 24, 1, RowSplit{5, 0, 1, 1}, {begin, length}, Pack::kDocuments);
      // Validation reads in file order, so the windows are known.
      const Batch batch = reader.validation(0, cpu.stream);
      const std::vector<std::int32_t> tokens = values(batch.tokens), targets = values(batch.targets),
                                      positions = values(batch.positions), starts = values(batch.starts);
      ASSERT_EQ(batch.starts.shape(), (Shape{5, 24}));
      std::int64_t valid = 0;
      for (std::int64_t row = 0; row < 5; ++row) {
        std::int64_t start = 0;
        for (std::int64_t i = 0; i < 24; ++i) {
          const std::int64_t place = row * 24 + i;
          if (i > 0 && Documents::id_at(place - 1) == 0) start = i;
          ASSERT_EQ(starts[static_cast<std::size_t>(place)], start) << row << ' ' << i;
          if (i < begin || i >= begin + length) continue;
          const auto at = static_cast<std::size_t>(row * length + i - begin);
          const bool ends = Documents::id_at(place) == 0;
          ASSERT_EQ(tokens[at], Documents::id_at(place));
          ASSERT_EQ(positions[at], i - start);
          ASSERT_EQ(targets[at], ends ? -1 : Documents::id_at(place + 1));
          valid += ends ? 0 : 1;
        }
      }
      EXPECT_EQ(batch.valid, valid);
    }
}

TEST(BatchReader, ReadsWindowsAcrossAnEosWhenAskedTo) {
  const Documents source;
  Cpu cpu;
  const BatchReader reader(source, 24, 1, RowSplit{5, 0, 1, 1}, {12, 12});
  const Batch batch = reader.train(0, 0, cpu.stream);
  EXPECT_FALSE(batch.starts.defined());
  EXPECT_EQ(batch.valid, 5 * 12);
  const std::vector<std::int32_t> positions = values(batch.positions);
  for (std::size_t i = 0; i < positions.size(); ++i)
    EXPECT_EQ(positions[i], 12 + static_cast<std::int32_t>(i % 12));
}

TEST(BatchReader, RefusesDocumentsThatNothingEnds) {
  const Counting source(33 * 20 + 1, 0);
  const std::string message = message_of<ConfigError>([&] {
    BatchReader(source, 33, 1, RowSplit{6, 0, 1, 1}, all_of(33), Pack::kDocuments);
  });
  EXPECT_NE(message.find("data.pack"), std::string::npos) << message;
}

TEST(BatchReader, CountsRowsFromTheFirstOfTheStep) {
  const Counting source(4 * 100 + 1, 0);
  Cpu cpu;
  for (std::int64_t rank : {0, 1})
    for (std::int64_t m : {0, 1, 2}) {
      const BatchReader reader(source, 4, 7, RowSplit{12, rank, 2, 3, 5, 36}, all_of(4));
      EXPECT_EQ(reader.train(6, m, cpu.stream).first_row, rank * 6 + m * 2);
    }
}

TEST(BatchReader, TargetsAreTheTokensThatFollow) {
  const Counting source(33 * 20 + 1, 0);
  const BatchReader reader(source, 33, 1, RowSplit{6, 0, 1, 1}, all_of(33));
  Cpu cpu;

  for (std::int64_t step = 0; step < 5; ++step) {
    const Batch batch = reader.train(step, 0, cpu.stream);
    ASSERT_EQ(batch.tokens.shape(), (Shape{6, 33}));
    ASSERT_EQ(batch.targets.shape(), (Shape{6, 33}));
    ASSERT_EQ(batch.tokens.dtype(), DType::kI32);
    ASSERT_EQ(batch.valid, 6 * 33);
    ASSERT_EQ(batch.first_position, 0);
    const std::vector<std::int32_t> tokens = values(batch.tokens), targets = values(batch.targets);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      ASSERT_EQ(targets[i], tokens[i] + 1);
      ASSERT_EQ(tokens[i] % 33, static_cast<std::int32_t>(i % 33)) << "windows start seq_len apart";
    }
  }
}

TEST(BatchReader, ReadsEveryWindowOnceAnEpochAndRunsAcrossItsEnd) {
  const Counting source(4 * 21 + 2, 0);  // 21 windows and one token over; 6 rows a step do not divide 21
  const BatchReader reader(source, 4, 7, RowSplit{6, 0, 1, 1}, all_of(4));
  Cpu cpu;
  std::vector<std::int32_t> first_tokens;
  for (std::int64_t step = 0; step < 7; ++step) {
    const std::vector<std::int32_t> tokens = values(reader.train(step, 0, cpu.stream).tokens);
    for (std::size_t row = 0; row < 6; ++row) first_tokens.push_back(tokens[4 * row]);
  }

  ASSERT_EQ(reader.train_windows(), 21);
  std::map<std::int32_t, int> times;
  for (const std::int32_t token : first_tokens) ++times[token];
  EXPECT_EQ(times.size(), 21u);
  for (const auto& [token, count] : times) EXPECT_EQ(count, 2) << token;
  EXPECT_EQ(std::set<std::int32_t>(first_tokens.begin(), first_tokens.begin() + 21).size(), 21u);
}

TEST(BatchReader, GivesTheSameGlobalRowsAtEveryRankAndMicrobatchCount) {
  const Counting source(5 * 40 + 1, 0);
  Cpu cpu;
  const auto rows_of_step = [&](std::int64_t step, std::int64_t ranks, std::int64_t microbatches) {
    std::vector<std::int32_t> rows;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const BatchReader reader(source, 5, 2, RowSplit{12, rank, ranks, microbatches}, all_of(5));
      for (std::int64_t m = 0; m < microbatches; ++m) {
        const Batch batch = reader.train(step, m, cpu.stream);
        EXPECT_EQ(batch.tokens.dim(0), 12 / ranks / microbatches);
        for (const std::int32_t id : values(batch.tokens)) rows.push_back(id);
        for (const std::int32_t id : values(batch.targets)) EXPECT_GE(id, 1);
      }
    }
    return rows;
  };

  for (const std::int64_t step : {0, 3, 1000}) {
    const std::vector<std::int32_t> whole = rows_of_step(step, 1, 1);
    for (const auto& [ranks, microbatches] :
         std::vector<std::pair<int, int>>{{2, 1}, {3, 2}, {4, 3}, {1, 12}, {12, 1}}) {
      EXPECT_EQ(rows_of_step(step, ranks, microbatches), whole)
          << step << ' ' << ranks << ' ' << microbatches;
    }
  }
}

TEST(BatchReader, TakesTargetsAtTheEdgeOfAPartFromTheWindow) {
  const Counting source(33 * 9 + 1, 0);
  Cpu cpu;
  const RowSplit split{4, 0, 1, 1};
  const Batch whole = BatchReader(source, 33, 1, split, all_of(33)).train(2, 0, cpu.stream);
  const std::vector<std::int32_t> tokens = values(whole.tokens), targets = values(whole.targets);

  for (const PositionRange part :
       {PositionRange{0, 16}, PositionRange{16, 17}, PositionRange{32, 1}, PositionRange{33, 0}}) {
    const Batch batch = BatchReader(source, 33, 1, split, part).train(2, 0, cpu.stream);
    ASSERT_EQ(batch.first_position, part.begin);
    ASSERT_EQ(batch.valid, 4 * part.length);
    const std::vector<std::int32_t> part_tokens = values(batch.tokens), part_targets = values(batch.targets);
    for (std::int64_t row = 0; row < 4; ++row) {
      for (std::int64_t i = 0; i < part.length; ++i) {
        const auto here = static_cast<std::size_t>(row * part.length + i);
        const auto there = static_cast<std::size_t>(row * 33 + part.begin + i);
        ASSERT_EQ(part_tokens[here], tokens[there]);
        ASSERT_EQ(part_targets[here], targets[there]);
      }
    }
  }
}

TEST(BatchReader, HintsExactlyWhatTheNextStepReads) {
  const Counting source(8 * 30 + 1, 0);
  const BatchReader reader(source, 8, 3, RowSplit{12, 1, 2, 3}, PositionRange{2, 5});
  Cpu cpu;
  for (std::int64_t m = 0; m < 3; ++m) reader.train(4, m, cpu.stream);
  const Counting::Ranges hinted = source.hinted;
  source.read_ranges.clear();

  for (std::int64_t m = 0; m < 3; ++m) reader.train(5, m, cpu.stream);

  EXPECT_EQ(hinted.size(), 6u);
  EXPECT_EQ(hinted, source.read_ranges);
}

TEST(BatchReader, ValidatesInFileOrderAMicrobatchACallAndPadsTheLastRows) {
  // Ten windows; a call reads two rows on each of two ranks, whatever the three microbatches of a step: two
  // rows of padding.
  const Counting source(100, 3 * 10 + 1);
  Cpu cpu;
  std::vector<std::int32_t> first_tokens;
  std::int64_t valid = 0;
  for (std::int64_t index = 0; index < 3; ++index) {
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      const BatchReader reader(source, 3, 1, RowSplit{12, rank, 2, 3}, all_of(3));
      ASSERT_EQ(reader.validation_windows(), 10);
      ASSERT_EQ(reader.validation_batches(), 3);
      const Batch batch = reader.validation(index, cpu.stream);
      ASSERT_EQ(batch.tokens.shape(), (Shape{2, 3}));
      ASSERT_EQ(batch.tokens.shape(), reader.train(0, 0, cpu.stream).tokens.shape());
      valid += batch.valid;
      const std::vector<std::int32_t> tokens = values(batch.tokens), targets = values(batch.targets);
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        const bool padding = index == 2 && rank == 1;
        ASSERT_EQ(targets[i], padding ? -1 : tokens[i] + 1);
        ASSERT_EQ(tokens[i] == 0, padding);
        if (i % 3 == 0 && !padding) first_tokens.push_back(tokens[i]);
      }
    }
  }

  EXPECT_EQ(valid, 30);
  ASSERT_EQ(first_tokens.size(), 10u);
  for (std::size_t i = 0; i < 10; ++i)
    EXPECT_EQ(first_tokens[i], kValidationBase + 3 * static_cast<std::int32_t>(i));
  const BatchReader reader(source, 3, 1, RowSplit{12, 0, 2, 3}, all_of(3));
  EXPECT_THROW(reader.validation(3, cpu.stream), Error);
}

TEST(BatchReader, MakesOnlyShapesOnAMetaDevice) {
  const Counting source(100, 50);
  const BatchReader reader(source, 4, 1, RowSplit{6, 0, 1, 2}, all_of(4));
  Allocator allocator(Device{Device::Kind::kMeta, 0});
  Stream stream(allocator);

  const Batch train = reader.train(0, 1, stream), validation = reader.validation(0, stream);

  EXPECT_EQ(train.tokens.shape(), (Shape{3, 4}));
  EXPECT_EQ(validation.targets.shape(), (Shape{3, 4}));
  EXPECT_EQ(train.valid, 12);
  EXPECT_EQ(source.reads, 0);
  EXPECT_TRUE(source.hinted.empty());
  constexpr auto kBuffers = static_cast<std::size_t>(Owner::kBuffers);
  EXPECT_EQ(allocator.use().live[kBuffers], allocator.use().total_live);
  EXPECT_GE(allocator.use().live[kBuffers], 2 * (3 + 3) * 4 * 4);
}

TEST(BatchReader, TellsEpochAndRowOfAStep) {
  const Counting source(4 * 21 + 1, 0);
  const BatchReader reader(source, 4, 1, RowSplit{6, 0, 1, 1}, all_of(4));

  EXPECT_EQ(reader.position(0).epoch, 0);
  EXPECT_EQ(reader.position(3).epoch, 0);
  EXPECT_EQ(reader.position(3).window, 18);
  EXPECT_EQ(reader.position(4).epoch, 1);
  EXPECT_EQ(reader.position(4).window, 3);
}

TEST(BatchReader, GoesOnFromTheRowWithWhichItsSplitBegan) {
  const Counting source(4 * 21 + 1, 0);
  Cpu cpu;
  const BatchReader six(source, 4, 1, RowSplit{6, 0, 1, 1}, all_of(4));
  const BatchReader three(source, 4, 1, RowSplit{3, 0, 1, 1, 4, 24}, all_of(4));  // after four steps of six
  std::vector<std::int32_t> rows, wanted = values(six.train(4, 0, cpu.stream).tokens);

  for (const std::int64_t step : {4, 5})
    for (const std::int32_t id : values(three.train(step, 0, cpu.stream).tokens)) rows.push_back(id);

  EXPECT_EQ(rows, wanted);
  EXPECT_EQ(three.position(4).epoch, 1);
  EXPECT_EQ(three.position(4).window, 3);
  EXPECT_EQ(three.position(10).epoch, 2);
  EXPECT_EQ(three.position(10).window, 0);
  EXPECT_THROW(three.train(3, 0, cpu.stream), Error);
  EXPECT_THROW(three.position(3), Error);
}

TEST(BatchReader, RefusesSplitsWithoutAWholeWindowWithTheNumbers) {
  const auto error = [](std::int64_t train, std::int64_t validation) {
    const Counting source(train, validation);
    return message_of<ConfigError>([&] { BatchReader(source, 64, 1, RowSplit{1, 0, 1, 1}, all_of(64)); });
  };

  EXPECT_EQ(error(65, 0), "");
  EXPECT_EQ(error(65, 65), "");
  EXPECT_EQ(error(64, 0),
            "data: the training split of a counting source holds 64 tokens, and one window of data.seq_len "
            "64 takes 65");
  EXPECT_NE(error(65, 64).find("data: the validation split of a counting source holds 64 tokens"),
            std::string::npos);
}

TEST(BatchReader, RefusesRowsThatDoNotDivideAndPartsBeyondTheWindow) {
  const Counting source(1000, 0);

  EXPECT_THROW(BatchReader(source, 8, 1, RowSplit{7, 0, 2, 1}, all_of(8)), Error);
  EXPECT_THROW(BatchReader(source, 8, 1, RowSplit{8, 2, 2, 1}, all_of(8)), Error);
  EXPECT_THROW(BatchReader(source, 8, 1, RowSplit{8, 0, 2, 1}, PositionRange{4, 5}), Error);
}

}  // namespace
}  // namespace dew
