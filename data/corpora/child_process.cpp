#include "data/corpora/child_process.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/base/error.h"

namespace zoo {
namespace {

class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) throw Error("cannot make a pipe: ", std::strerror(errno));
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_write_end() { close_end(1); }

 private:
  void close_end(std::size_t which) {
    if (ends_[which] >= 0) ::close(ends_[which]);
    ends_[which] = -1;
  }
  std::array<int, 2> ends_{-1, -1};
};

int spawn(const std::vector<std::string>& arguments, const std::filesystem::path& file, const Pipe& output,
          const Pipe& errors, pid_t& child) {
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (file.empty()) posix_spawn_file_actions_adddup2(&actions, output.write_end(), STDOUT_FILENO);
  else posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, file.c_str(), O_WRONLY | O_APPEND, 0);
  posix_spawn_file_actions_adddup2(&actions, errors.write_end(), STDERR_FILENO);
  const int error = ::posix_spawnp(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

// Reads both pipes as they fill: a program that blocks on one never closes the other.
void read_both(const Pipe& output, const Pipe& errors, ChildResult& result) {
  std::array<pollfd, 2> polled{{{output.read_end(), POLLIN, 0}, {errors.read_end(), POLLIN, 0}}};
  const std::array<std::string*, 2> texts{&result.output, &result.error_output};
  std::array<char, 1 << 16> buffer;
  while (polled[0].fd >= 0 || polled[1].fd >= 0) {
    if (::poll(polled.data(), polled.size(), -1) < 0) continue;  // EINTR
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].fd < 0 || polled[i].revents == 0) continue;
      const ssize_t count = ::read(polled[i].fd, buffer.data(), buffer.size());
      if (count > 0) texts[i]->append(buffer.data(), static_cast<std::size_t>(count));
      if (count == 0 || (count < 0 && errno != EINTR)) polled[i].fd = -1;  // poll() ignores it from now on
    }
  }
}

}  // namespace

std::string ChildResult::reason() const {
  std::string line;
  for (const char c : error_output) {
    const bool is_break = c == '\n' || c == '\r';
    if (!is_break) line += c;
    if (is_break && !line.empty() && line.back() != ' ') line += ' ';
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line.empty() ? "exit code " + std::to_string(exit_code) : line;
}

std::optional<ChildResult> run_program(const std::vector<std::string>& arguments,
                                       const std::filesystem::path& file) {
  Pipe output, errors;
  pid_t child = 0;
  const int error = spawn(arguments, file, output, errors, child);
  if (error == ENOENT) return std::nullopt;
  if (error != 0) throw Error("cannot run ", arguments[0], ": ", std::strerror(error));
  output.close_write_end();
  errors.close_write_end();
  ChildResult result;
  read_both(output, errors, result);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

}  // namespace zoo
