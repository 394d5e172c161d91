#pragma once

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fcntl.h>

#include "data/base/descriptor.h"
#include "data/base/error.h"

namespace zoo {

/// A file that grows at its end. Each record is one write, so that a kill can only cut the last one short.
class AppendFile {
 public:
  /// Opens the file or creates it. Throws Error naming it.
  explicit AppendFile(std::filesystem::path path)
      : path_(std::move(path)),
        descriptor_(::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) throw Error("cannot write ", path_, ": ", std::strerror(errno));
  }

  /// Throws Error naming the file, for example if the disk is full.
  void append(std::string_view record) {
    const ssize_t written = ::write(descriptor_, record.data(), record.size());
    if (written != static_cast<ssize_t>(record.size()))
      throw Error("cannot write ", path_, ": ", written < 0 ? std::strerror(errno) : "the disk is full");
  }
  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return descriptor_; }

 private:
  std::filesystem::path path_;
  Descriptor descriptor_;
};

}  // namespace zoo
