#include "data/base/directory_lock.h"

#include <cerrno>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "data/base/atomic_file.h"
#include "data/base/error.h"

namespace zoo {

DirectoryLock::DirectoryLock(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / ".lock";
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0) throw Error("cannot write ", path, ": ", std::strerror(errno));
  // On file systems without locks, the directory counts as free.
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(descriptor_);
    const std::string owner = read_file(path);
    throw Error(directory, " is being written by process ", owner.empty() ? "(unknown)" : owner);
  }
  const std::string owner = std::to_string(::getpid());
  const bool written = ::ftruncate(descriptor_, 0) == 0 &&
                       ::write(descriptor_, owner.data(), owner.size()) == static_cast<ssize_t>(owner.size());
  if (written) return;
  const int error = errno;
  ::close(descriptor_);
  throw Error("cannot write ", path, ": ", std::strerror(error));
}

DirectoryLock::~DirectoryLock() { ::close(descriptor_); }

}  // namespace zoo
