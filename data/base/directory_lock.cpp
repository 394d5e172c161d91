#include "data/base/directory_lock.h"

#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "data/base/atomic_file.h"
#include "data/base/error.h"

namespace zoo {
namespace {

bool is_locked(int descriptor) {
  // On file systems without locks, the directory counts as free.
  return ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

bool has_ended(const std::string& process) {
  pid_t id = 0;
  std::from_chars(process.data(), process.data() + process.size(), id);
  return id > 0 && ::kill(id, 0) != 0 && errno == ESRCH;
}

// Linux can free the lock of a killed process some 50 ms after the process is gone.
bool stays_locked(int descriptor, const std::filesystem::path& path) {
  constexpr auto kPatience = std::chrono::seconds(2);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (is_locked(descriptor)) {
    if (!has_ended(read_file(path)) || std::chrono::steady_clock::now() > end) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace

DirectoryLock::DirectoryLock(const std::filesystem::path& directory)
    : descriptor_(::open((directory / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  const std::filesystem::path path = directory / ".lock";
  if (descriptor_ < 0) throw Error("cannot write ", path, ": ", std::strerror(errno));
  if (stays_locked(descriptor_, path)) {
    const std::string owner = read_file(path);
    throw Error(directory, " is being written by process ", owner.empty() ? "(unknown)" : owner);
  }
  const std::string owner = std::to_string(::getpid());
  if (::ftruncate(descriptor_, 0) != 0 ||
      ::write(descriptor_, owner.data(), owner.size()) != static_cast<ssize_t>(owner.size()))
    throw Error("cannot write ", path, ": ", std::strerror(errno));
}

}  // namespace zoo
