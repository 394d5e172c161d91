#pragma once

#include <filesystem>
#include <string_view>

#include "data/base/descriptor.h"

namespace zoo {

/// A file that grows at its end. Each record is one write, so that a kill can only cut the last one short.
class AppendFile {
 public:
  /// Opens the file or creates it. Throws Error naming it.
  explicit AppendFile(std::filesystem::path path);

  /// Throws Error naming the file, for example if the disk is full.
  void append(std::string_view record);
  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return descriptor_; }

 private:
  std::filesystem::path path_;
  Descriptor descriptor_;
};

}  // namespace zoo
