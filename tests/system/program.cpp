#include "system/program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>

namespace dew::testing {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::string> command_of(const Launch& launch) {
  std::vector<std::string> command;
  if (launch.ranks > 0)
    command = {"mpirun", "--allow-run-as-root", "--oversubscribe", "-np", std::to_string(launch.ranks)};
  command.emplace_back(DEW_TRAIN_BINARY);
  command.insert(command.end(), launch.arguments.begin(), launch.arguments.end());
  if (!launch.last_rank_arguments.empty()) {
    for (const char* word : {":", "-np", "1", DEW_TRAIN_BINARY}) command.emplace_back(word);
    command.insert(command.end(), launch.last_rank_arguments.begin(), launch.last_rank_arguments.end());
  }
  return command;
}

/// In the child: does not return.
[[noreturn]] void become(const Launch& launch, const std::vector<std::string>& command, int out, int err) {
  ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  ::setpgid(0, 0);
  for (const auto& [name, value] : launch.environment) ::setenv(name.c_str(), value.c_str(), 1);
  if (launch.largest_file) {
    const rlimit limit{static_cast<rlim_t>(*launch.largest_file), static_cast<rlim_t>(*launch.largest_file)};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words.front(), words.data());
  std::fprintf(stderr, "%s: %s\n", words.front(), std::strerror(errno));
  ::_exit(127);
}

/// The parent of a process, from the fields after its name; -1 when it is gone.
pid_t parent_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return -1;
  int parent = -1;
  char state = 0;
  if (std::sscanf(text.c_str() + name_end + 1, " %c %d", &state, &parent) != 2 || state == 'Z') return -1;
  return parent;
}

int rank_of(pid_t pid) {
  constexpr std::string_view kName = "OMPI_COMM_WORLD_RANK=";
  std::ifstream file("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
  for (std::string variable; std::getline(file, variable, '\0');)
    if (variable.starts_with(kName)) return std::stoi(variable.substr(kName.size()));
  return -1;
}

}  // namespace

int count_of(std::string_view text, std::string_view part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size()))
    ++count;
  return count;
}

Program::Program(Launch launch) : launch_(std::move(launch)), deadline_(Clock::now() + launch_.limit) {
  std::array<int, 2> out, err;
  DEW_CHECK(::pipe2(out.data(), O_CLOEXEC) == 0 && ::pipe2(err.data(), O_CLOEXEC) == 0);
  const std::vector<std::string> command = command_of(launch_);
  pid_ = ::fork();
  DEW_CHECK(pid_ >= 0);
  if (pid_ == 0) become(launch_, command, out[1], err[1]);
  ::close(out[1]);
  ::close(err[1]);
  out_ = out[0];
  err_ = err[0];
}

Program::~Program() {
  if (pid_ > 0) {
    kill_all();
    ::waitpid(pid_, nullptr, 0);
  }
  for (int end : {out_, err_})
    if (end >= 0) ::close(end);
}

// Takes what the pipes hold; false once both are at their end.
bool Program::pump(std::chrono::milliseconds wait) {
  if (out_ < 0 && err_ < 0) return false;
  std::array<pollfd, 2> ends{{{out_, POLLIN, 0}, {err_, POLLIN, 0}}};  // poll passes over a -1
  if (::poll(ends.data(), ends.size(), static_cast<int>(wait.count())) <= 0) return true;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (ends[i].revents == 0) continue;
    std::array<char, 4096> buffer;
    const ssize_t count = ::read(ends[i].fd, buffer.data(), buffer.size());
    int& end = i == 0 ? out_ : err_;
    if (count > 0) {
      (i == 0 ? outcome_.out : outcome_.err).append(buffer.data(), static_cast<std::size_t>(count));
    } else {
      ::close(end);
      end = -1;
    }
  }
  return out_ >= 0 || err_ >= 0;
}

bool Program::wait_for(std::string_view text) {
  while (Clock::now() < deadline_) {
    if (outcome_.out.find(text) != std::string::npos) return true;
    if (!pump(std::chrono::milliseconds(20))) return false;
  }
  return false;
}

void Program::send(int signal) const {
  ::kill(pid_, signal);
}

bool Program::send_to_rank(int rank, int signal) const {
  for (pid_t child : children())
    if (rank_of(child) == rank) return ::kill(child, signal) == 0;
  return false;
}

std::vector<pid_t> Program::children() const {
  std::vector<pid_t> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (const pid_t pid = std::stoi(name); parent_of(pid) == pid_) found.push_back(pid);
  }
  return found;
}

// mpirun puts ranks into groups of their own, so they are found before it goes.
void Program::kill_all() const {
  const std::vector<pid_t> ranks = children();
  ::kill(pid_, SIGKILL);
  for (pid_t rank : ranks) ::kill(rank, SIGKILL);
}

Outcome Program::finish() {
  while (pump(std::chrono::milliseconds(50))) {
    if (Clock::now() < deadline_) continue;
    outcome_.timed_out = true;
    kill_all();
    break;
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  if (WIFSIGNALED(status)) outcome_.signal = WTERMSIG(status);
  if (WIFEXITED(status) && !outcome_.timed_out) outcome_.status = WEXITSTATUS(status);
  return outcome_;
}

Outcome train(Launch launch) {
  return Program(std::move(launch)).finish();
}

Outcome train(int ranks, std::vector<std::string> arguments) {
  Launch launch;
  launch.ranks = ranks;
  launch.arguments = std::move(arguments);
  return train(std::move(launch));
}

}  // namespace dew::testing
