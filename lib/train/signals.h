// The wish to stop: TERM, INT and USR1 set a flag that the trainer reads at each step.
#pragma once

namespace dew {

/// Catches the signals while it lives. One at a time in a process: a signal handler has nowhere else to leave
/// its mark.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();
  /// True once one of them has arrived at this process.
  bool received() const;
};

}  // namespace dew
