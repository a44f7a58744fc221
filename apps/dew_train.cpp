// The command line of dew_train, and the one place where an error ends the program.
#include <signal.h>
#include <unistd.h>

#include <boost/program_options.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "base/timer.h"
#include "base/version.h"
#include "comm/mpi_env.h"
#include "kernels/threads.h"
#include "train/leaf_comparison.h"
#include "train/run_setup.h"
#include "train/trainer.h"

namespace po = boost::program_options;

namespace {

constexpr int kExitFailed = 1, kExitWrongInput = 2, kExitStopped = 75;

struct CommandLine {
  std::string run_file;
  std::vector<std::string> overrides;
  std::optional<std::string> resume;
  std::optional<std::int64_t> verify_steps;
  bool help = false, version = false, keys = false;
};

po::options_description visible_options() {
  po::options_description all("dew_train RUN.yaml [options]\n\nOptions");
  all.add_options()("help,h", "this text")("version", "the version")(
      "keys", "the table of every key of a run description, as Markdown")(
      "set", po::value<std::vector<std::string>>()->composing()->value_name("KEY.PATH=VALUE"),
      "overrides a key of the file; may be repeated")(
      "resume", po::value<std::string>()->value_name("auto|never|require"), "overrides checkpoint.resume")(
      "verify", po::value<std::string>()->implicit_value("1")->value_name("STEPS"),
      "runs STEPS steps (default 1) on the mesh and whole on one rank, compares loss, gradient norm, every "
      "gradient "
      "and update, and writes nothing; exit 0 when they agree, 1 when not")(
      "plan", po::value<std::string>()->implicit_value("")->value_name("search"),
      "not available in this version");
  return all;
}

std::int64_t verify_steps(const std::string& text) {
  constexpr std::int64_t kMost = 1000;
  if (text == "shrink")
    throw dew::ConfigError("--verify=shrink: not available in this version; accepted: a number of steps");
  std::size_t used = 0;
  std::int64_t steps = 0;
  if (!text.empty() && text.size() <= 4 && text.find_first_not_of("0123456789") == std::string::npos)
    steps = std::stoll(text, &used);
  if (used != text.size() || steps < 1 || steps > kMost)
    throw dew::ConfigError("--verify=" + text + ": accepted: a number of steps from 1 to 1000");
  return steps;
}

CommandLine parse(int argc, char** argv) {
  po::options_description all;
  all.add(visible_options()).add_options()("run-file", po::value<std::vector<std::string>>());
  po::positional_options_description positional;
  positional.add("run-file", -1);
  po::variables_map given;
  try {
    // No guessing: an abbreviated option is an unknown one.
    const int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(argc, argv).options(all).positional(positional).style(style).run(),
              given);
  } catch (const po::error& error) {
    throw dew::ConfigError(std::string(error.what()) + "; see dew_train --help");
  }
  CommandLine line;
  line.help = given.contains("help");
  line.version = given.contains("version");
  line.keys = given.contains("keys");
  if (line.help || line.version || line.keys) return line;
  if (given.contains("plan")) throw dew::ConfigError("--plan: not available in this version");
  if (given.contains("set")) line.overrides = given["set"].as<std::vector<std::string>>();
  if (given.contains("resume")) line.resume = given["resume"].as<std::string>();
  if (given.contains("verify")) line.verify_steps = verify_steps(given["verify"].as<std::string>());
  const auto files = given.contains("run-file") ? given["run-file"].as<std::vector<std::string>>()
                                                : std::vector<std::string>{};
  if (files.size() != 1)
    throw dew::ConfigError("give one run description: dew_train RUN.yaml; see dew_train --help");
  line.run_file = files.front();
  return line;
}

/// The text of the run description as rank 0 reads it, or its error, on every rank.
dew::Config read_config(const CommandLine& line, const dew::HostGroup& world) {
  std::string text, fault;
  if (world.rank() == 0) {
    std::error_code code;
    const auto kind = std::filesystem::status(line.run_file, code).type();
    std::ifstream file(line.run_file, std::ios::binary);
    if (kind == std::filesystem::file_type::not_found)
      fault = "no such file";
    else if (kind == std::filesystem::file_type::directory)
      fault = "is a directory";
    else if (!file)
      fault = "cannot be read";
    constexpr std::streamsize kMost = 2 << 20;  // more than a description may have; a device has no end
    text.resize(kMost);
    if (fault.empty()) file.read(text.data(), kMost);  // an empty file is refused by the parser
    text.resize(fault.empty() ? static_cast<std::size_t>(file.gcount()) : 0);
  }
  fault = world.broadcast(fault, 0);
  if (!fault.empty()) throw dew::ConfigError(line.run_file + ": " + fault);
  dew::Config config = dew::Config::from_text(world.broadcast(text, 0), line.run_file);
  for (const std::string& assignment : line.overrides) config.set(assignment);
  if (line.resume) config.set("checkpoint.resume=" + *line.resume);
  return config;
}

/// Whether a person watches. Under mpirun a rank's output is a pseudo-terminal whatever mpirun's own output
/// is, so the launcher's is looked at instead.
bool prints_to_terminal() {
  if (isatty(STDOUT_FILENO) == 0) return false;
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) return true;
  std::error_code error;
  const auto launcher =
      std::filesystem::read_symlink(dew::format("/proc/%d/fd/1", getppid()), error).string();
  return !error && (launcher.starts_with("/dev/pts/") || launcher.starts_with("/dev/tty"));
}

int verify(const dew::RunSetup& setup, std::int64_t steps, const dew::Log& log) {
  log.line(dew::format("%s: comparing %s with one rank, %lld step%s", setup.spec.run.name.c_str(),
                       dew::axes_text(setup.mesh).c_str(), static_cast<long long>(steps),
                       steps == 1 ? "" : "s"));
  const dew::Comparison result = dew::compare_with_one_rank(setup, steps);
  log.line("worst leaves first\n" + result.table(20));
  return result.passed() ? 0 : kExitFailed;
}

int run(const CommandLine& line, const dew::MpiEnv& mpi, const dew::HostResources& host,
        std::optional<dew::StopSignals>& signals) {
  const auto setup = dew::prepare_run(read_config(line, mpi.world()), mpi.world());
  const dew::Log log(stdout, setup->ranks.rank() == 0);
  if (line.verify_steps) {
    signals.reset();  // there is nothing to save: a signal ends it
    return verify(*setup, *line.verify_steps, log);
  }
  dew::Trainer trainer({*setup, host, *signals, log, prints_to_terminal()});
  return trainer.run() == dew::RunEnd::kStopped ? kExitStopped : 0;
}

/// Every rank has the same error: rank 0 prints it, and all leave together, so that the launcher kills
/// nobody.
int end_together(const dew::MpiEnv& mpi, const std::string& text, int status) {
  if (mpi.world().rank() == 0) std::fprintf(stderr, "dew_train: %s\n", text.c_str());
  mpi.world().barrier();
  return status;
}

/// Ranks that were started with other words would train something else, or wait for each other for ever.
void check_same_command_line(const dew::HostGroup& world, int argc, char** argv) {
  std::string mine;
  for (int i = 1; i < argc; ++i) mine += (i > 1 ? " " : "") + std::string(argv[i]);
  const std::vector<std::string> all = world.gather(mine);
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all.front())
      throw dew::ConfigError(
          dew::format("the command line differs between ranks: rank 0 has '%s', rank %zu has '%s'",
                      all.front().c_str(), rank, all[rank].c_str()));
}

/// Everything from MPI's start on; errors here can be told with rank and host.
int run_job(int argc, char** argv, const dew::HostResources& host, std::optional<dew::StopSignals>& signals) {
  dew::MpiEnv mpi(argc, argv);
  dew::kernels::set_threads(host.threads);
  try {
    check_same_command_line(mpi.world(), argc, argv);
    const CommandLine line = parse(argc, argv);
    if (line.help || line.version || line.keys) {
      std::ostringstream text;
      if (line.help) text << visible_options();
      if (line.version) text << "dew_train " << dew::kVersion << '\n';
      if (line.keys) text << dew::key_table();
      if (mpi.world().rank() == 0) std::cout << text.str() << std::flush;
      return 0;
    }
    return run(line, mpi, host, signals);
  } catch (const dew::ConfigError& error) {
    return end_together(mpi, error.what(), kExitWrongInput);
  } catch (const dew::SharedError& error) {
    return end_together(mpi, error.what(), kExitFailed);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dew_train: [rank %d/%d %s] %s\n", mpi.world().rank(), mpi.world().size(),
                 dew::host_name().c_str(), error.what());
    std::fflush(stderr);
    mpi.abort(kExitFailed);
  }
}

/// What tell_lost_page says: a signal handler has nowhere else to find it.
std::string lost_page_text;

extern "C" void tell_lost_page(int signal, siginfo_t* info, void*) {
  if (info->si_code == BUS_ADRERR) {
    static_cast<void>(::write(STDERR_FILENO, lost_page_text.data(), lost_page_text.size()) < 0);
    _exit(kExitFailed);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// A page of a mapped file that is no more would end the process without a word.
void watch_mapped_files() {
  const char *rank = std::getenv("OMPI_COMM_WORLD_RANK"), *size = std::getenv("OMPI_COMM_WORLD_SIZE");
  lost_page_text = dew::format(
      "dew_train: [rank %s/%s %s] lost a page of a mapped file: a data file was cut short while "
      "the run read it, or /dev/shm is full\n",
      rank != nullptr ? rank : "0", size != nullptr ? size : "1", dew::host_name().c_str());
  struct sigaction action = {};
  action.sa_sigaction = tell_lost_page;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::signal(SIGXFSZ, SIG_IGN);  // a file size limit becomes an error of the write, on every rank alike
    watch_mapped_files();
    const dew::HostResources host = dew::prepare_launch();
    std::optional<dew::StopSignals> signals(std::in_place);
    return run_job(argc, argv, host, signals);
  } catch (const std::exception& error) {  // before or after MPI's life
    std::fprintf(stderr, "dew_train: [%s] %s\n", dew::host_name().c_str(), error.what());
    return kExitFailed;
  }
}
