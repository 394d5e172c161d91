#include "apps/training/stop_signal.h"

#include <csignal>

#include <unistd.h>

namespace zoo {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
volatile std::sig_atomic_t received_signal = 0;
std::string line;  // set while no handler is installed

void record_signal(int signal) {
  received_signal = signal;
  static_cast<void>(!::write(STDERR_FILENO, line.data(), line.size()));
  std::signal(signal, SIG_DFL);
}

}  // namespace

StopSignal::StopSignal(const std::string& notice) {
  received_signal = 0;
  line = notice.empty() ? "" : (::isatty(STDERR_FILENO) == 1 ? "\n" : "") + notice + "\n";
  for (const int signal : kSignals) {
    // A process under nohup ignores SIGHUP.
    if (std::signal(signal, record_signal) == SIG_IGN && signal == SIGHUP) std::signal(signal, SIG_IGN);
  }
}

StopSignal::~StopSignal() {
  for (const int signal : kSignals)
    if (std::signal(signal, SIG_DFL) == SIG_IGN && signal == SIGHUP) std::signal(signal, SIG_IGN);
}

int StopSignal::received() { return received_signal; }

}  // namespace zoo
