#pragma once

#include <filesystem>
#include <fstream>
#include <string_view>

namespace zoo::test {

/// Writes the bytes without the code under test, and without waiting for the disk. Returns the path.
inline std::filesystem::path write_bytes(const std::filesystem::path& path, std::string_view bytes) {
  // Creates a new file: some file systems sync an overwritten one.
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

}  // namespace zoo::test
