#pragma once

namespace zoo {

/// While it lives, the first Ctrl-C (SIGINT) or SIGTERM is remembered instead of ending the process; a second
/// one ends it at once. One at a time.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// The signal's number, or 0 while none came.
  static int received();
};

}  // namespace zoo
