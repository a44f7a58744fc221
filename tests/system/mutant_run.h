// One damaged input given to the steps of the program, in this process and on all ranks of the test.
#pragma once

#include <string>
#include <vector>

#include "support/hang_guard.h"

namespace dew::testing {

enum class End : std::uint8_t {
  kTrained,  ///< up to two steps, an evaluation and a checkpoint, with finite losses
  kPlanned,  ///< accepted, with its memory counted, and too large to train here
  kRefused,  ///< ConfigError
  kStopped,  ///< SharedError: all ranks ended a started run
  kBroken    ///< any other exception
};

struct Ending {
  End end = End::kBroken;
  std::vector<std::string> messages;
  std::string text() const;
};

/// Parses, reads, opens the data, plans, and trains where that is small, with the run's files in `folder`,
/// which is left as it was. Collective over world().
Ending ending_of(const std::string& description, const std::string& name, const std::string& folder);

/// What is wrong with an ending, or "": every message of a refusal must start with the description's name, or
/// with a key and where it stands ("data.batch (line 3)", "(default)"), or with a key that names a file or a
/// folder of its own ("data.tokens: FILE: "); one of a stopped run with its step or the file. No message may
/// be empty, huge or an exception's own words. All ranks must have the same.
std::string fault_of(const Ending& ending, const std::string& name);

/// Says on which input a process hangs or crashes: the seed and the input go to standard error.
class MutantWatch {
 public:
  MutantWatch();
  MutantWatch(const MutantWatch&) = delete;
  MutantWatch& operator=(const MutantWatch&) = delete;
  ~MutantWatch();
  void begin(const std::string& input);

 private:
  HangGuard guard_;
};

}  // namespace dew::testing
