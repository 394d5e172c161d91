#include "apps/command/mapping_fault.h"

#include <csignal>
#include <cstring>

#include <unistd.h>

#include "data/base/mapped_file.h"

namespace zoo {
namespace {

void print(const char* text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
}

// Uses only async-signal-safe calls.
void end_with_a_line(int, siginfo_t* fault, void*) {
  const char* path = MappedFile::path_at(fault->si_addr);
  if (path == nullptr) {  // another cause: the retried access ends as usual
    std::signal(SIGBUS, SIG_DFL);
    return;
  }
  print("error: ");
  print(path);
  print(" became shorter while it was in use, or its disk failed; replace a file by renaming a new one\n");
  ::_exit(1);
}

}  // namespace

void report_mapping_faults() {
  struct sigaction action {};
  action.sa_sigaction = end_with_a_line;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace zoo
