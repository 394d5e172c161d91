#pragma once

namespace zoo {

/// While in scope, the first Ctrl-C (SIGINT) or SIGTERM is recorded instead of ending the process; a second
/// one ends it at once. Only one may exist at a time.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// Signal number, or 0 if none has arrived.
  static int received();
};

}  // namespace zoo
