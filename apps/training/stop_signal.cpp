#include "apps/training/stop_signal.h"

#include <csignal>

namespace zoo {
namespace {

volatile std::sig_atomic_t received_signal = 0;

void remember(int signal) {
  received_signal = signal;
  std::signal(signal, SIG_DFL);
}

}  // namespace

StopSignal::StopSignal() {
  received_signal = 0;
  std::signal(SIGINT, remember);
  std::signal(SIGTERM, remember);
}

StopSignal::~StopSignal() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

int StopSignal::received() {
  return received_signal;
}

}  // namespace zoo
