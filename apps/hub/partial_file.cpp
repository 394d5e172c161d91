#include "apps/hub/partial_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "data/base/atomic_file.h"
#include "data/base/error.h"

namespace zoo {

namespace fs = std::filesystem;

PartialFile::PartialFile(fs::path path)
    : path_(std::move(path)), descriptor_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) fail();
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    ::close(descriptor_);
    throw Error(path_.string(), ": another process is downloading this file");
  }
  size_ = ::lseek(descriptor_, 0, SEEK_END);
}

PartialFile::~PartialFile() {
  ::close(descriptor_);
}

void PartialFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail();
    bytes.remove_prefix(static_cast<std::size_t>(written));
    size_ += written;
  }
}

void PartialFile::cut(std::int64_t size) {
  if (::ftruncate(descriptor_, size) != 0) fail();
  size_ = ::lseek(descriptor_, size, SEEK_SET);
}

void PartialFile::become(const fs::path& name) {
  std::error_code error;
  if (::fsync(descriptor_) != 0) fail();
  fs::rename(path_, name, error);
  if (error) throw Error(name.string(), ": cannot be written: ", error.message());
  sync_directory(name.parent_path());
}

void PartialFile::fail() const {
  throw Error(path_.string(), ": cannot be written: ", std::strerror(errno));
}

}  // namespace zoo
