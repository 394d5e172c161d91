// Starts a program once and runs it many times: loading LibTorch takes a fifth of a second, a fork some
// milliseconds. Preloaded (LD_PRELOAD) into a program, it answers at the socket ZOO_FORK_SOCKET in place of
// main(): each request runs main() in a copy of the process that has done nothing yet, with the client's
// arguments, environment, folder and standard streams. tests/run.sh starts it for tzoo. See protocol.h.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <dlfcn.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/runner/protocol.h"

extern char** environ;

namespace {

using Main = int (*)(int, char**, char**);
Main program_main = nullptr;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

// What a request asks for. Its texts stay where they were read.
struct Run {
  std::vector<char> texts;
  std::vector<char*> arguments, variables;  // each ended by a null pointer
  const char* folder = nullptr;
  int streams[3] = {-1, -1, -1};
};

bool receive_all(int channel, char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t got = recv(channel, data, size, 0);
    if (got <= 0) return false;
    data += got, size -= static_cast<std::size_t>(got);
  }
  return true;
}

bool receive(int channel, Run& run) {
  Request request{};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof run.streams)] = {};
  iovec part{&request, sizeof request};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(channel, &message, MSG_CMSG_CLOEXEC) != static_cast<ssize_t>(sizeof request)) return false;
  int sent[3] = {-1, -1, -1}, *next = sent;
  if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr)
    std::memcpy(sent, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
  for (unsigned stream = 0; stream < 3; ++stream)
    if (request.streams & 1U << stream) run.streams[stream] = *next++;

  run.texts.resize(request.bytes);
  if (!receive_all(channel, run.texts.data(), run.texts.size())) return false;
  char* text = run.texts.data();
  const auto take = [&](std::uint32_t count, std::vector<char*>& into) {
    for (; count > 0; --count, text += std::strlen(text) + 1) into.push_back(text);
    into.push_back(nullptr);
  };
  take(request.arguments, run.arguments);
  take(request.variables, run.variables);
  run.folder = text;
  return true;
}

std::string_view variable(const Run& run, std::string_view name) {
  for (const char* each : run.variables) {
    const std::string_view text = each == nullptr ? "" : each;
    if (text.starts_with(name) && text.substr(name.size()).starts_with('='))
      return text.substr(name.size() + 1);
  }
  return "";
}

// What is read when a program is loaded cannot be set for a copy of one that is.
bool can_run(const Run& run) {
  return variable(run, "LD_PRELOAD").empty() && variable(run, "LD_LIBRARY_PATH").empty() &&
         variable(run, "GOMP_SPINCOUNT").empty() && variable(run, "OMP_WAIT_POLICY") != "active";
}

[[noreturn]] void become(Run& run) {
  for (int stream = 0; stream < 3; ++stream) {
    if (run.streams[stream] >= 0) dup2(run.streams[stream], stream);
    else close(stream);
  }
  for (const int stream : run.streams)
    if (stream >= 0) close(stream);
  environ = run.variables.data();
  if (const std::string threads(variable(run, "OMP_NUM_THREADS")); !threads.empty())
    if (auto* set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads")))
      set(std::atoi(threads.c_str()));
  if (chdir(run.folder) != 0) fail(run.folder);
  std::exit(program_main(static_cast<int>(run.arguments.size()) - 1, run.arguments.data(), environ));
}

class Server {
 public:
  explicit Server(const char* path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (std::strlen(path) >= sizeof address.sun_path) fail("ZOO_FORK_SOCKET is too long");
    std::strcpy(address.sun_path, path);
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener_ < 0 || bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener_, 64) != 0)
      fail(path);
    sigset_t ended;
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ended, &signals_);
    ended_ = signalfd(-1, &ended, SFD_CLOEXEC);
  }

  // Until the one that started it ends, which its standard input tells.
  void serve() {
    while (true) {
      std::vector<pollfd> watched{{STDIN_FILENO, POLLIN, 0}, {listener_, POLLIN, 0}, {ended_, POLLIN, 0}};
      for (const Client& client : clients_) watched.push_back({client.channel, POLLRDHUP, 0});
      if (poll(watched.data(), watched.size(), -1) < 0) continue;
      if (watched[0].revents != 0) break;
      for (std::size_t i = 0; i < clients_.size(); ++i)
        if (watched[i + 3].revents != 0) kill(clients_[i].process, SIGKILL);  // whoever asked has been killed
      if (watched[2].revents != 0) report_ended();
      if (watched[1].revents != 0) accept_client();
    }
    for (const Client& client : clients_) kill(client.process, SIGKILL);
  }

 private:
  struct Client {
    int channel;
    pid_t process;
  };

  void accept_client() {
    const int channel = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    Run run;
    std::int32_t process = 0;
    if (channel >= 0 && receive(channel, run) && can_run(run)) {
      process = fork();
      if (process == 0) {
        close(listener_), close(ended_), close(channel);
        for (const Client& client : clients_) close(client.channel);
        sigprocmask(SIG_SETMASK, &signals_, nullptr);
        become(run);
      }
    }
    for (const int stream : run.streams)
      if (stream >= 0) close(stream);
    send(channel, &process, sizeof process, MSG_NOSIGNAL);
    if (process > 0) clients_.push_back({channel, process});
    else close(channel);
  }

  void report_ended() {
    signalfd_siginfo ignored;
    static_cast<void>(read(ended_, &ignored, sizeof ignored));
    int status = 0;
    rusage used{};
    while (const pid_t process = wait4(-1, &status, WNOHANG, &used)) {
      if (process < 0) return;
      for (auto client = clients_.begin(); client != clients_.end(); ++client) {
        if (client->process != process) continue;
        Ended ended{};
        ended.status = status;
        ended.microseconds = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1'000'000LL +
                             used.ru_utime.tv_usec + used.ru_stime.tv_usec;
        send(client->channel, &ended, sizeof ended, MSG_NOSIGNAL);
        close(client->channel);
        clients_.erase(client);
        break;
      }
    }
  }

  int listener_ = -1, ended_ = -1;
  sigset_t signals_;
  std::vector<Client> clients_;
};

int serve(int, char**, char**) {
  Server(std::getenv("ZOO_FORK_SOCKET")).serve();
  std::_Exit(0);
}

}  // namespace

// glibc's: called by a program's first instructions with its main().
extern "C" int __libc_start_main(Main main, int argc, char** argv, void (*init)(), void (*fini)(),
                                 void (*rtld_fini)(), void* stack_end) {
  program_main = main;
  auto* start = reinterpret_cast<decltype(&__libc_start_main)>(dlsym(RTLD_NEXT, "__libc_start_main"));
  const bool serves = std::getenv("ZOO_FORK_SOCKET") != nullptr;
  return start(serves ? serve : main, argc, argv, init, fini, rtld_fini, stack_end);
}
