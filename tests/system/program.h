// A program of the project as a user starts it: alone or under mpirun, watched, signalled and ended in time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/temp_folder.h"

namespace dew::testing {

/// How a program ended. `status` is its exit status, or -1 after a signal (then `signal`) or past the limit.
struct Outcome {
  int status = -1;
  int signal = 0;
  bool timed_out = false;
  std::string out, err;
  std::string text() const { return out + err; }
  bool says(std::string_view part) const { return text().find(part) != std::string::npos; }
};

/// How often a text holds a part.
int count_of(std::string_view text, std::string_view part);

struct Launch {
  std::vector<std::string> arguments;
  int ranks = 0;                                 ///< 0: without a launcher
  std::vector<std::string> last_rank_arguments;  ///< where not empty: one more rank, started with these
  std::map<std::string, std::string> environment;
  std::optional<std::int64_t> largest_file;  ///< bytes that one file may have, as `ulimit -f`
  std::chrono::seconds limit{180};           ///< then everything is killed
};

/// A started dew_train. Whatever still runs at the end of the object is killed.
class Program {
 public:
  explicit Program(Launch launch);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  /// Waits until standard output holds the text; false when the program ended before, or at the limit.
  bool wait_for(std::string_view text);
  /// To the program, or to mpirun.
  void send(int signal) const;
  /// To one rank under mpirun, past the launcher; false where no such rank runs.
  bool send_to_rank(int rank, int signal) const;
  Outcome finish();

 private:
  bool pump(std::chrono::milliseconds wait);
  std::vector<pid_t> children() const;
  void kill_all() const;

  Launch launch_;
  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;  ///< our ends of the pipes; -1 at their end
  Outcome outcome_;
  std::chrono::steady_clock::time_point deadline_;
};

/// Starts dew_train and waits for its end.
Outcome train(Launch launch);
Outcome train(int ranks, std::vector<std::string> arguments);

}  // namespace dew::testing
