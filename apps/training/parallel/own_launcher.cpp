#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <iostream>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <unistd.h>

#include "apps/training/parallel/launchers.h"
#include "apps/training/parallel/rank_watch.h"
#include "apps/training/stop_signal.h"
#include "data/base/environment.h"
#include "data/base/error.h"
#include "data/base/processors.h"

extern char** environ;

namespace zoo {
namespace {

constexpr int kUsage = 2;      // exit status of wrong flags (main.cpp)
constexpr int kStopped = 128;  // exit statuses from here on are of processes that a signal has stopped
// After the first failure the others have so long to end by themselves.
constexpr std::chrono::seconds kGrace(15);

int wake_pipe[2];  // of signals' numbers, from the handler

void record_signal(int signal) {
  const auto number = static_cast<unsigned char>(signal);
  static_cast<void>(!::write(wake_pipe[1], &number, 1));
}

void check(int result, const char* what) {
  if (result != 0) throw std::system_error(result, std::generic_category(), what);
}

// Variables of the environment in which those of `own` are replaced.
std::vector<std::string> environment_with(const std::vector<std::string>& own) {
  std::vector<std::string> all = own;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string name(*at, std::strcspn(*at, "=") + 1);
    if (std::ranges::none_of(own, [&](const std::string& other) { return other.starts_with(name); }))
      all.emplace_back(*at);
  }
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

class Process {
 public:
  Process(std::vector<std::string> words, std::int64_t rank, std::vector<std::string> variables)
      : rank_(rank) {
    variables.push_back("RANK=" + std::to_string(rank));
    variables.push_back("LOCAL_RANK=" + std::to_string(rank));
    variables = environment_with(variables);
    errors_ = rank == 0 ? STDERR_FILENO : ::memfd_create("errors", MFD_CLOEXEC);
    posix_spawn_file_actions_t files;
    check(::posix_spawn_file_actions_init(&files), "posix_spawn");
    ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (rank > 0) {
      ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
      ::posix_spawn_file_actions_adddup2(&files, errors_, STDERR_FILENO);
    }
    posix_spawnattr_t attributes;
    check(::posix_spawnattr_init(&attributes), "posix_spawn");
    // A group of its own: otherwise Ctrl-C would arrive twice, from the terminal and from here.
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    const int fault = ::posix_spawn(&pid_, "/proc/self/exe", &files, &attributes, pointers(words).data(),
                                    pointers(variables).data());
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&files);
    check(fault, "cannot start a process");
  }

  std::int64_t rank() const { return rank_; }
  bool lives() const { return pid_ > 0; }
  int status() const { return status_; }  // of waitpid
  bool failed() const { return !lives() && !(WIFEXITED(status_) && is_good(WEXITSTATUS(status_))); }
  bool refused_flags() const { return !lives() && WIFEXITED(status_) && WEXITSTATUS(status_) == kUsage; }

  void signal(int number) const {
    if (lives()) ::kill(pid_, number);
  }
  /// True if it has ended since the last call.
  bool ended() {
    if (!lives() || ::waitpid(pid_, &status_, WNOHANG) != pid_) return false;
    pid_ = -1;
    return true;
  }

  std::string failure() const {
    const std::string name = "rank " + std::to_string(rank_) + " on " + host_name();
    if (WIFSIGNALED(status_))
      return name + " was killed by signal " + std::to_string(WTERMSIG(status_)) + " (" +
             ::strsignal(WTERMSIG(status_)) + ")";
    const std::string line = last_line();
    return name + (line.empty() ? " ended with status " + std::to_string(WEXITSTATUS(status_)) : ": " + line);
  }

 private:
  static bool is_good(int status) { return status == 0 || status >= kStopped; }

  // What a rank other than 0 printed last, without "error: ".
  std::string last_line() const {
    constexpr std::string_view kError = "error: ";
    std::string text(4096, '\0');
    const off_t size = rank_ == 0 ? 0 : ::lseek(errors_, 0, SEEK_END);
    const off_t from = std::max<off_t>(size - static_cast<off_t>(text.size()), 0);
    const ssize_t got = rank_ == 0 ? 0 : ::pread(errors_, text.data(), text.size(), from);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    while (text.ends_with('\n')) text.pop_back();
    text.erase(0, text.rfind('\n') + 1);
    if (text.starts_with(kError)) text.erase(0, kError.size());
    return text;
  }

  std::int64_t rank_;
  pid_t pid_ = -1;
  int status_ = 0, errors_ = -1;
};

void catch_signals() {
  check(::pipe2(wake_pipe, O_CLOEXEC | O_NONBLOCK) == 0 ? 0 : errno, "pipe");
  std::signal(SIGCHLD, record_signal);
  std::signal(SIGTSTP, record_signal);
  handle_stop_signals(record_signal);
}

// The next signals; empty after the timeout.
std::vector<int> next_signals(int milliseconds) {
  pollfd waits{.fd = wake_pipe[0], .events = POLLIN, .revents = 0};
  ::poll(&waits, 1, milliseconds);
  std::array<unsigned char, 64> numbers{};
  const ssize_t count = ::read(wake_pipe[0], numbers.data(), numbers.size());
  return {numbers.begin(), numbers.begin() + std::max<ssize_t>(count, 0)};
}

std::vector<Process> start(const std::vector<std::string>& words, std::int64_t count, std::uint16_t port,
                           std::int64_t restart) {
  std::vector<std::string> variables{"WORLD_SIZE=" + std::to_string(count),
                                     "LOCAL_WORLD_SIZE=" + std::to_string(count),
                                     "MASTER_ADDR=127.0.0.1",
                                     "MASTER_PORT=" + std::to_string(port),
                                     "TORCHELASTIC_USE_AGENT_STORE=True",
                                     kRestarts + ("=" + std::to_string(restart)),
                                     std::string(kOwnLauncher) + "=" + std::to_string(count)};
  const std::int64_t processors = usable_processors();
  if (environment("OMP_NUM_THREADS").empty())
    variables.push_back("OMP_NUM_THREADS=" + std::to_string(std::max<std::int64_t>(processors / count, 1)));
  std::vector<Process> processes;
  for (std::int64_t rank = 0; rank < count; ++rank) processes.emplace_back(words, rank, variables);
  return processes;
}

struct End {
  int signal = 0;         // that has stopped all
  std::string failure;    // of the first rank that failed
  bool is_usage = false;  // a rank found the flags wrong, which they would be at another start
  int first = 0;          // rank 0's status of waitpid
};

End run_once(const std::vector<std::string>& words, std::int64_t count, std::int64_t restart) {
  using std::chrono::steady_clock;
  constexpr std::uint16_t kAnyFree = 0;
  const c10d::TCPStoreOptions options{.port = kAnyFree, .isServer = true, .waitWorkers = false};
  const auto server = c10::make_intrusive<c10d::TCPStore>("localhost", options);
  c10d::PrefixStore store(store_prefix(std::to_string(restart)), server);
  std::vector<Process> processes = start(words, count, server->getPort(), restart);
  End end;
  auto deadline = steady_clock::time_point::max();
  while (std::ranges::any_of(processes, &Process::lives)) {
    constexpr int kPause = 500;
    for (const int signal : next_signals(kPause)) {
      if (signal == SIGCHLD) continue;
      const auto pass_on = [&](int number) {
        for (const Process& process : processes) process.signal(number);
      };
      if (signal == SIGTSTP) {  // they are in groups of their own, and would wait for this process
        pass_on(SIGSTOP);
        ::raise(SIGSTOP);
        pass_on(SIGCONT);
        continue;
      }
      end.signal = signal;
      pass_on(signal);
    }
    for (Process& process : processes) {
      if (!process.ended() || !process.failed() || !end.failure.empty()) continue;
      end.failure = process.failure();
      deadline = steady_clock::now() + kGrace;
      set_end(store, {end.failure, process.refused_flags() ? kUsage : EXIT_FAILURE});
    }
    if (steady_clock::now() > deadline)
      for (const Process& process : processes) process.signal(SIGKILL);
  }
  // Not of the first that failed: a rank whose flags are wrong tells the others before it ends.
  end.is_usage = std::ranges::any_of(processes, &Process::refused_flags);
  end.first = processes.front().status();
  return end;
}

}  // namespace

int run_processes(const std::vector<std::string>& words, std::int64_t count, std::int64_t restarts) {
  catch_signals();
  End end = run_once(words, count, 0);
  for (std::int64_t restart = 1;
       restart <= restarts && end.signal == 0 && !end.failure.empty() && !end.is_usage; ++restart) {
    std::cerr << "restart " << restart << " of " << restarts << ": " << end.failure << std::endl;
    end = run_once(words, count, restart);
  }
  if (end.signal != 0 && (end.failure.empty() || !WIFEXITED(end.first))) return kStopped + end.signal;
  // Rank 0 has printed the failure.
  if (WIFEXITED(end.first) && WEXITSTATUS(end.first) != 0) return WEXITSTATUS(end.first);
  if (!end.failure.empty()) throw Error(end.failure);
  return 0;
}

}  // namespace zoo
