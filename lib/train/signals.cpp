#include "train/signals.h"

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
  for (int signal : kSignals) std::signal(signal, note_signal);
}

StopSignals::~StopSignals() {
  for (int signal : kSignals) std::signal(signal, SIG_DFL);
}

bool StopSignals::received() const {
  return signal_received != 0;
}

}  // namespace dew
