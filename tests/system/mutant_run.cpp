#include "system/mutant_run.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <typeinfo>

#include "comm/agreement.h"
#include "support/mpi_world.h"
#include "train/trainer.h"

namespace dew::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSteps = 2;
constexpr std::array<int, 5> kCrashes{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

struct Watched {
  std::string input;
  std::array<struct sigaction, kCrashes.size()> before{};
  std::vector<char> stack = std::vector<char>(1 << 16);  // one that has run over cannot be used
};

Watched& watched() {
  static Watched one;
  return one;
}

extern "C" void tell_of_crash(int number) {
  const std::string& input = watched().input;
  const char* head = "\ncrashed on ";
  [[maybe_unused]] ssize_t told = ::write(STDERR_FILENO, head, 12);
  told = ::write(STDERR_FILENO, input.data(), input.size());
  // What was there before ends the process, when the fault comes again.
  for (std::size_t i = 0; i < kCrashes.size(); ++i) ::sigaction(kCrashes[i], &watched().before[i], nullptr);
  if (number == SIGABRT) ::raise(number);
}

bool small(const RunSetup& setup) {
  constexpr std::int64_t kBytes = 256 << 20;
  constexpr double kFlops = 1e8;
  return setup.plan.memory.total_peak < kBytes && setup.plan.flops_per_step < kFlops &&
         setup.model.chain.size() < 40 && microbatches_of(setup.spec, setup.mesh) <= 32;
}

/// Fewer steps, and files in a folder of the test's: a description may ask for any.
void cap(RunSpec& spec, const std::string& dir) {
  spec.run.steps = std::min(spec.run.steps, kSteps);
  spec.run.dir = dir;
  spec.eval.batches = std::min<std::int64_t>(spec.eval.batches.value_or(2), 2);
  spec.peak_flops = spec.peak_flops.value_or(1e9);
}

/// The rows that the run will read: in the program a rank that cannot read ends the job alone.
void read_all(const RunSetup& setup) {
  Allocator allocator(Device{});
  Stream stream(allocator);
  const Mesh mesh(setup.ranks, setup.mesh, setup.groups);
  const DataFeed feed(*setup.source, setup.spec, mesh, setup.ranks);
  succeed_together(setup.ranks, [&] {
    for (std::int64_t step = 0; step < setup.spec.run.steps; ++step)
      for (std::int64_t m = 0; m < microbatches_of(setup.spec, setup.mesh); ++m)
        feed.reader().train(step, m, stream);
    for (std::int64_t i = 0; i < feed.validation_batches(); ++i) feed.reader().validation(i, stream);
  });
}

/// Every line of metrics is JSON, and every loss a number.
void check_metrics(const std::string& file) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    DEW_CHECK(json.is_object(), line);
    for (const char* key : {"loss", "val_loss"})
      if (json.contains(key)) DEW_CHECK(json[key].is_number(), line);
  }
}

void train_small(RunSetup& setup, const std::string& folder) {
  const std::string dir = folder + "/run";
  cap(setup.spec, dir);
  read_all(setup);
  const StopSignals signals;
  const HostResources host;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> sink(std::fopen("/dev/null", "w"), &std::fclose);
  const bool first = setup.ranks.rank() == 0;
  const Log log(sink.get(), first);
  Trainer({setup, host, signals, log}).run();
  succeed_together(setup.ranks, [&] {
    if (first) check_metrics(dir + "/metrics.jsonl");
  });
}

bool starts_with_place(const std::string& message) {
  for (const char* place : {" (line ", " (default)"})
    if (const std::size_t at = message.find(place); at != std::string::npos && at > 0 && at < 600)
      return true;
  return false;
}

bool starts_with_any(const std::string& message, const std::vector<std::string>& starts) {
  return std::any_of(starts.begin(), starts.end(), [&](const auto& s) { return message.starts_with(s); });
}

/// What is wrong with one message.
std::string fault_of(const std::string& message, End end, const std::string& name) {
  constexpr std::size_t kLong = 4000;
  if (message.empty()) return "empty";
  if (message.starts_with("and ") && message.ends_with(" more errors")) return "";
  if (message.size() > kLong) return "longer than " + std::to_string(kLong) + " bytes";
  for (const char* words : {"check failed", "std::", "basic_string", "vector::", "bad_", "filesystem error"})
    if (message.find(words) != std::string::npos) return "an exception's own words";
  const std::vector<std::string> files{
      "model: required", "sequence_exchange: ", "data: ", "data.tokens: ", "data.text: ",
      "run.dir: ",       "checkpoint.resume: "};
  const bool placed =
      message.starts_with(name) || starts_with_place(message) || starts_with_any(message, files);
  const bool stepped = end == End::kStopped && (message.starts_with("step ") || message.starts_with("/"));
  return placed || stepped ? "" : "names neither a key with its place nor a file";
}

}  // namespace

std::string Ending::text() const {
  std::string all;
  for (const std::string& message : messages) all += message + '\n';
  return all;
}

Ending ending_of(const std::string& description, const std::string& name, const std::string& folder) {
  Ending ending;
  try {
    const auto setup = prepare_run(Config::from_text(description, name), world());
    ending.end = End::kPlanned;
    if (small(*setup)) {
      train_small(*setup, folder);
      ending.end = End::kTrained;
    }
  } catch (const ConfigError& error) {
    ending = {End::kRefused, error.messages()};
  } catch (const SharedError& error) {
    ending = {End::kStopped, {error.what()}};
  } catch (const std::exception& error) {
    ending = {End::kBroken, {std::string(typeid(error).name()) + ": " + error.what()}};
  }
  world().barrier();
  std::error_code none;
  if (world().rank() == 0) fs::remove_all(folder + "/run", none);
  world().barrier();
  return ending;
}

std::string fault_of(const Ending& ending, const std::string& name) {
  const std::string mine = std::to_string(static_cast<int>(ending.end)) + ": " + ending.text();
  const std::vector<std::string> all = world().gather(mine);
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all.front())
      return "rank 0 ends with " + all.front() + "rank " + std::to_string(rank) + " with " + all[rank];
  if (ending.end == End::kBroken) return "ends in another exception: " + ending.text();
  const bool told = ending.end == End::kRefused || ending.end == End::kStopped;
  if (told && ending.messages.empty()) return "refused without a message";
  for (const std::string& message : ending.messages)
    if (const std::string fault = fault_of(message, ending.end, name); !fault.empty())
      return "a message is unclear (" + fault + "): " + message;
  return "";
}

MutantWatch::MutantWatch() : guard_("rank " + std::to_string(world().rank()), std::chrono::seconds(60)) {
  const stack_t stack{watched().stack.data(), 0, watched().stack.size()};
  ::sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = tell_of_crash;
  action.sa_flags = SA_ONSTACK;
  for (std::size_t i = 0; i < kCrashes.size(); ++i) ::sigaction(kCrashes[i], &action, &watched().before[i]);
}

MutantWatch::~MutantWatch() {
  guard_.end();
  for (std::size_t i = 0; i < kCrashes.size(); ++i) ::sigaction(kCrashes[i], &watched().before[i], nullptr);
  stack_t off{};
  off.ss_flags = SS_DISABLE;
  ::sigaltstack(&off, nullptr);
}

void MutantWatch::begin(const std::string& input) {
  watched().input = input + '\n';
  guard_.begin(input);
}

}  // namespace dew::testing
