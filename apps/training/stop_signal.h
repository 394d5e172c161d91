#pragma once

#include <string>

namespace zoo {

/// Calls `handler` for SIGINT, SIGTERM and SIGHUP, but not for a SIGHUP that is ignored, as under nohup.
void handle_stop_signals(void (*handler)(int));

/// While in scope, the first Ctrl-C (SIGINT), SIGTERM or hangup of the terminal (SIGHUP) is recorded instead
/// of ending the process; a second one ends it at once. Only one may exist at a time.
class StopSignal {
 public:
  /// The signal prints `notice` on standard error at once, on a separate line.
  explicit StopSignal(const std::string& notice = "");
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// Signal number, or 0 if none has arrived.
  static int received();
};

}  // namespace zoo
