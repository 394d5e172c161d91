#pragma once

#include <filesystem>

#include "data/base/descriptor.h"

namespace zoo {

/// While it lives, no other process gets a lock of the same directory. A killed process releases its own. The
/// file `.lock` in the directory, which is never removed, has the owner's process id.
class DirectoryLock {
 public:
  /// Throws Error naming the process that holds the lock, or a directory that cannot be written.
  explicit DirectoryLock(const std::filesystem::path& directory);

 private:
  Descriptor descriptor_;
};

}  // namespace zoo
