#include "data/corpora/child_process.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/base/descriptor.h"
#include "data/base/error.h"

namespace zoo {
namespace {

// A file without a name, for what a program writes: unlike a pipe it never fills.
struct MemoryFile : Descriptor {
  MemoryFile() : Descriptor(::memfd_create("output", MFD_CLOEXEC)) {
    if (*this < 0) throw Error("cannot make a file in memory: ", std::strerror(errno));
  }

  std::string text() const {
    std::string text(static_cast<std::size_t>(::lseek(*this, 0, SEEK_END)), '\0');
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t count = ::pread(*this, &text[at], text.size() - at, static_cast<off_t>(at));
      if (count <= 0) throw Error("cannot read a program's output: ", std::strerror(errno));
      at += static_cast<std::size_t>(count);
    }
    return text;
  }
};

int spawn(const std::vector<std::string>& arguments, const std::filesystem::path& file,
          const MemoryFile& output, const MemoryFile& errors, pid_t& child) {
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (file.empty()) posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  else posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, file.c_str(), O_WRONLY | O_APPEND, 0);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  const int error = ::posix_spawnp(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return error;
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
  const MemoryFile output, errors;
  pid_t child = 0;
  const int error = spawn(arguments, file, output, errors, child);
  if (error == ENOENT) return std::nullopt;
  if (error != 0) throw Error("cannot run ", arguments[0], ": ", std::strerror(error));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const int exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return ChildResult{exit_code, output.text(), errors.text()};
}

}  // namespace zoo
