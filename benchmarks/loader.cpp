// Reading a 10 GB token directory on one thread: seconds to open it, beside the system's own calls; tokens/s
// of BatchReader::train at 64 rows of 2,048, beside a plain loop that widens as many ids that lie in memory;
// and the share of a step that waits for its tokens when the rest of the step takes 20M tokens/s: read when
// they are wanted, and read a step ahead by a thread, as a run does.
//   first     windows that nothing has read yet
//   again     the same windows, now in the page cache
// A step hints at the rows of the next one; the first step of all, of which nothing told, is printed apart.
// Rows are windows or documents (which look for the ends of documents). The directory is sparse and its ids
// are zeros, so nothing comes from a disk: what a disk takes comes on top of `first`.
//   bench_loader [--steps N, default 200] [--folder DIR, default the system's for temporary files]
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/timer.h"
#include "io/batch.h"
#include "io/posix_file.h"
#include "io/token_meta.h"
#include "train/data_feed.h"

namespace {

using namespace dew;

constexpr std::int64_t kTrainTokens = 5'000'000'000, kValidationTokens = 1'000'000;
constexpr std::int64_t kRows = 64, kLength = 2048, kStepTokens = kRows * kLength;
constexpr double kTrainingRate = 20e6;  // tokens/s of a step without its data

/// The sparse directory, removed at the end.
class SparseDirectory {
 public:
  explicit SparseDirectory(const std::filesystem::path& folder) {
    path_ = (folder / "bench_loader.XXXXXX").string();
    DEW_CHECK(::mkdtemp(path_.data()) != nullptr, path_);
    TokenMeta meta;
    meta.tokenizer = "none";
    meta.vocab_size = 50257;
    meta.type = TokenType::kUint16;
    meta.train_tokens = kTrainTokens;
    meta.val_tokens = kValidationTokens;
    meta.eos_id = 50256;
    make_hole(kTrainFile, kTrainTokens);
    make_hole(kValidationFile, kValidationTokens);
    const std::string text = to_json(meta);
    PosixFile::create(file(kMetaFile)).write_at(0, text.data(), static_cast<std::int64_t>(text.size()));
  }
  SparseDirectory(const SparseDirectory&) = delete;
  SparseDirectory& operator=(const SparseDirectory&) = delete;
  ~SparseDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  void make_hole(std::string_view name, std::int64_t tokens) const {
    const std::string path = file(name);
    const PosixFile made = PosixFile::create(path);
    DEW_CHECK(::truncate(path.c_str(), tokens * static_cast<std::int64_t>(sizeof(std::uint16_t))) == 0, path);
  }

  std::string path_;
};

/// Seconds of the system's calls that any reader of the directory makes: open and map both files.
double plain_open(const SparseDirectory& directory) {
  const double start = steady_seconds();
  for (const std::string_view name : {kTrainFile, kValidationFile}) {
    const std::int64_t tokens = name == kTrainFile ? kTrainTokens : kValidationTokens;
    const std::size_t bytes = static_cast<std::size_t>(tokens) * sizeof(std::uint16_t);
    const int file = ::open(directory.file(name).c_str(), O_RDONLY | O_CLOEXEC);
    void* block = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
    DEW_CHECK(file >= 0 && block != MAP_FAILED, directory.path());
    ::munmap(block, bytes);
    ::close(file);
  }
  return steady_seconds() - start;
}

void measure_open(const SparseDirectory& directory) {
  constexpr int kTurns = 20;
  double first = 0, own = 1e30, plain = 1e30;
  for (int turn = 0; turn < kTurns; ++turn) {
    double seconds = 0;
    {
      ScopeTimer timer(seconds);
      const auto source = open_token_directory(directory.path());
      const BatchReader reader(*source, kLength, 0, {.batch = kRows}, {0, kLength});
    }
    if (turn == 0) first = seconds;
    own = std::min(own, seconds);
    plain = std::min(plain, plain_open(directory));
  }
  std::printf("open_seconds first %.6f best %.6f plain_calls %.6f ratio %.1f\n", first, own, plain,
              own / plain);
}

/// What is left of a batch when its ids are at hand: three arrays, written in one loop.
class PlainLoop {
 public:
  PlainLoop() : ids_(kStepTokens + 1), tokens_(kStepTokens), targets_(kStepTokens), positions_(kStepTokens) {}

  double seconds() {
    const double start = steady_seconds();
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      tokens_[i] = ids_[i];
      targets_[i] = ids_[i + 1];
      positions_[i] = static_cast<std::int32_t>(i) % static_cast<std::int32_t>(kLength);
    }
    const double taken = steady_seconds() - start;
    ids_.front() = static_cast<std::uint16_t>(tokens_.back() + targets_.front() + positions_.back());  // used
    return taken;
  }

 private:
  std::vector<std::uint16_t> ids_;
  std::vector<std::int32_t> tokens_, targets_, positions_;
};

void measure_reading(const TokenSource& source, Pack pack, std::int64_t first_step, int steps) {
  Allocator allocator{Device{}};
  Stream stream(allocator);
  const BatchReader reader(source, kLength, 0, {.batch = kRows}, {0, kLength}, pack);
  PlainLoop plain;
  double plain_seconds = 1e30;
  for (const char* pass : {"first", "again"}) {
    double total = 0, waited = 0;
    std::vector<double> seconds;
    for (int step = 0; step <= steps; ++step) {
      const double start = steady_seconds();
      const Batch batch = reader.train(first_step + step, 0, stream);
      seconds.push_back(steady_seconds() - start);
      plain_seconds = std::min(plain_seconds, plain.seconds());
      if (step > 0) total += seconds.back();
    }
    // The same read one step ahead, as a run does, beside a core that is busy for the rest of the step.
    const std::int64_t ahead_from = first_step + 10'000;
    ReadAhead ahead;
    const auto room = [&] { return std::vector<Batch>{reader.room(stream)}; };
    ahead.start(reader, ahead_from, room());
    for (int step = 0; step <= steps; ++step) {
      const double start = steady_seconds();
      const std::vector<Batch> batches = ahead.take(ahead_from + step);
      ahead.start(reader, ahead_from + step + 1, room());
      const double took = steady_seconds() - start;
      if (step > 0) waited += took;
      while (steady_seconds() - start - took < kStepTokens / kTrainingRate) {
      }
    }
    const double unhinted = seconds.front(), mean = total / steps, compute = kStepTokens / kTrainingRate;
    std::sort(seconds.begin() + 1, seconds.end());
    const double median = seconds[seconds.size() / 2];
    std::printf(
        "%-9s %-5s tokens_per_second mean %.4g median %.4g plain_loop %.4g  time_of_plain %.1f  "
        "share_of_a_step mean %.4f median %.4f  waited_share ahead %.4f  unhinted_step_ms %.2f\n",
        pack == Pack::kWindows ? "windows" : "documents", pass, kStepTokens / mean, kStepTokens / median,
        kStepTokens / plain_seconds, mean / plain_seconds, mean / (mean + compute),
        median / (median + compute), waited / (waited + steps * compute), 1e3 * unhinted);
    std::fflush(stdout);
  }
}

void run(int steps, const std::filesystem::path& folder) {
  const SparseDirectory directory(folder);
  std::printf("%.1f GB of uint16 ids, %lld rows x %lld, %d steps, a step of %.2f ms beside its data\n",
              static_cast<double>(kTrainTokens) * 2e-9, static_cast<long long>(kRows),
              static_cast<long long>(kLength), steps, 1e3 * kStepTokens / kTrainingRate);
  measure_open(directory);
  const auto source = open_token_directory(directory.path());
  measure_reading(*source, Pack::kWindows, 0, steps);
  measure_reading(*source, Pack::kDocuments, steps + 2, steps);  // behind what was read and hinted at
}

}  // namespace

int main(int argc, char** argv) {
  int steps = 200;
  std::filesystem::path folder = std::filesystem::temp_directory_path();
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string(argv[i]) == "--steps") steps = std::max(1, std::atoi(argv[i + 1]));
    if (std::string(argv[i]) == "--folder") folder = argv[i + 1];
  }
  try {
    run(steps, folder);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_loader: %s\n", error.what());
    return 1;
  }
  return 0;
}
