// The clients of the fork servers, and the measure of a test's processor time.
//
//   forked_tzoo ARGUMENT...         runs tzoo as the program itself would, from the server that tests/run.sh
//   starts forked_python SCRIPT ...        runs a script so in the Python of third_party/interop measured
//   NAME PROGRAM ...       runs a program and adds its processor time to the file ZOO_TEST_TIMES
//
// Without a server (ZOO_FORK_SERVERS is not set, or nobody listens) the program itself is started.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/runner/protocol.h"

extern char** environ;

namespace {

constexpr int kForwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
volatile pid_t running = 0;

void forward(int signal) {
  if (running > 0) kill(running, signal);
}

// Signals go to the process that runs for this one.
void forward_signals(pid_t process) {
  running = process;
  for (const int signal : kForwarded) {
    struct sigaction before;
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) std::signal(signal, forward);
  }
}

// Adds a line "microseconds<TAB>test" to the file of times.
void add_time(std::int64_t microseconds) {
  const char *path = std::getenv("ZOO_TEST_TIMES"), *test = std::getenv("ZOO_TEST");
  if (path == nullptr || test == nullptr) return;
  const int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return;
  const std::string line = std::to_string(microseconds) + "\t" + test + "\n";
  if (write(file, line.data(), line.size()) < 0) std::perror(path);
  close(file);
}

// Ends as the other process did.
[[noreturn]] void end_as(int status) {
  if (WIFSIGNALED(status)) {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    std::signal(WTERMSIG(status), SIG_DFL);
    kill(getpid(), WTERMSIG(status));
  }
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128);
}

int measured(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: measured NAME PROGRAM [ARGUMENT...]\n");
    return 2;
  }
  setenv("ZOO_TEST", argv[1], 1);
  const pid_t child = fork();
  if (child == 0) {
    execvp(argv[2], argv + 2);
    std::perror(argv[2]);
    _exit(127);
  }
  forward_signals(child);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  rusage used;
  getrusage(RUSAGE_CHILDREN, &used);
  add_time((used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1'000'000LL + used.ru_utime.tv_usec +
           used.ru_stime.tv_usec);
  end_as(status);
}

int connect_to(const char* server) {
  const char* folder = std::getenv("ZOO_FORK_SERVERS");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (folder == nullptr || std::snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", folder,
                                         server) >= static_cast<int>(sizeof address.sun_path))
    return -1;
  const int lowest = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int channel =
      fcntl(lowest, F_DUPFD_CLOEXEC, 3);  // not in the place of a standard stream that is closed
  close(lowest);
  if (channel < 0 || connect(channel, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return channel;
  close(channel);
  return -1;
}

bool send_all(int channel, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t sent = send(channel, data, size, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    data += sent, size -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int channel, void* data, std::size_t size) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = recv(channel, at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got, size -= static_cast<std::size_t>(got);
  }
  return true;
}

bool send_request(int channel, int argc, char** argv) {
  Request request{};
  std::string texts;
  for (; request.arguments < static_cast<std::uint32_t>(argc); ++request.arguments)
    texts.append(argv[request.arguments]) += '\0';
  for (char** variable = environ; *variable != nullptr; ++variable, ++request.variables)
    texts.append(*variable) += '\0';
  char* folder = getcwd(nullptr, 0);
  if (folder == nullptr) return false;
  texts.append(folder) += '\0';
  std::free(folder);
  request.bytes = static_cast<std::uint32_t>(texts.size());

  int streams[3];
  std::size_t count = 0;
  for (int stream = 0; stream < 3; ++stream) {
    if (fcntl(stream, F_GETFD) < 0) continue;
    request.streams |= 1U << stream;
    streams[count++] = stream;
  }
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof streams)] = {};
  iovec part{&request, sizeof request};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (count > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(header), streams, count * sizeof(int));
  }
  return sendmsg(channel, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof request) &&
         send_all(channel, texts.data(), texts.size());
}

[[maybe_unused]] int forked(const char* server, const char* program, char** argv) {
  std::string name = program;  // a virtual environment's Python finds its packages by it
  argv[0] = name.data();
  int argc = 0;
  while (argv[argc] != nullptr) ++argc;
  const int channel = connect_to(server);
  std::int32_t process = 0;
  if (channel >= 0 && send_request(channel, argc, argv) && receive_all(channel, &process, sizeof process) &&
      process > 0) {
    forward_signals(process);
    Ended ended{};
    if (!receive_all(channel, &ended, sizeof ended)) {
      std::fprintf(stderr, "the fork server of %s has ended\n", server);
      return 125;
    }
    add_time(ended.microseconds);
    end_as(ended.status);
  }
  execv(program, argv);
  std::perror(program);
  return 127;
}

}  // namespace

int main(int argc, char** argv) {
#ifdef PROGRAM
  static_cast<void>(argc), static_cast<void>(&measured);
  return forked(SERVER, PROGRAM, argv);
#else
  return measured(argc, argv);
#endif
}
