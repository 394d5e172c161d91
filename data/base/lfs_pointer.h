#pragma once

#include <filesystem>
#include <string_view>

#include "data/base/error.h"

namespace zoo {

/// Throws Error if a file's content is a Git LFS pointer to a large file.
inline void refuse_lfs_pointer(const std::filesystem::path& path, std::string_view content) {
  if (content.starts_with("version https://git-lfs.github.com/"))
    throw Error(path,
                ": is a Git LFS pointer, not the file itself; 'git lfs pull' in its directory fetches it");
}

}  // namespace zoo
