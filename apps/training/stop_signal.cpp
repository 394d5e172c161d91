#include "apps/training/stop_signal.h"

#include <csignal>

#include <unistd.h>

namespace zoo {
namespace {

volatile std::sig_atomic_t received_signal = 0;
std::string line;  // set while no handler is installed

void record_signal(int signal) {
  received_signal = signal;
  static_cast<void>(!::write(STDERR_FILENO, line.data(), line.size()));
  std::signal(signal, SIG_DFL);
}

}  // namespace

void handle_stop_signals(void (*handler)(int)) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    if (std::signal(signal, handler) == SIG_IGN && signal == SIGHUP) std::signal(signal, SIG_IGN);
}

StopSignal::StopSignal(const std::string& notice) {
  received_signal = 0;
  line = notice.empty() ? "" : (::isatty(STDERR_FILENO) == 1 ? "\n" : "") + notice + "\n";
  handle_stop_signals(record_signal);
}

StopSignal::~StopSignal() { handle_stop_signals(SIG_DFL); }

int StopSignal::received() { return received_signal; }

}  // namespace zoo
