#include "data/base/append_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>

#include "data/base/error.h"

namespace zoo {

AppendFile::AppendFile(std::filesystem::path path)
    : path_(std::move(path)),
      descriptor_(::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) throw Error("cannot write ", path_, ": ", std::strerror(errno));
}

void AppendFile::append(std::string_view record) {
  const ssize_t written = ::write(descriptor_, record.data(), record.size());
  if (written != static_cast<ssize_t>(record.size()))
    throw Error("cannot write ", path_, ": ", written < 0 ? std::strerror(errno) : "the disk is full");
}

}  // namespace zoo
