#include "train/signals.h"

#include <signal.h>

#include <array>
#include <csignal>

namespace dew {
namespace {

constexpr std::array<int, 3> kSignals{SIGTERM, SIGINT, SIGUSR1};
volatile std::sig_atomic_t signal_received = 0;

extern "C" void note_signal(int) {
  signal_received = 1;
}

}  // namespace

StopSignals::StopSignals() {
  signal_received = 0;
  // No restart: a rank that waits to print, to a launcher that reads no more, must come back to save.
  struct sigaction action = {};
  action.sa_handler = note_signal;
  for (int signal : kSignals) sigaction(signal, &action, nullptr);
}

StopSignals::~StopSignals() {
  for (int signal : kSignals) std::signal(signal, SIG_DFL);
}

bool StopSignals::received() const {
  return signal_received != 0;
}

}  // namespace dew
